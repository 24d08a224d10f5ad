<?php
// A body without validators for "…plain.mp4"; everything else is a file, also served without validators by php -S.
if (!str_ends_with($_SERVER['REQUEST_URI'], 'plain.mp4')) {
    return false;
}
header('Content-Type: video/mp4');
readfile(getenv('SITE') . '/plain.mp4.data');
