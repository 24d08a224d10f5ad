<?php
// A body without validators for "…plain.mp4"; everything else is a file, which php -S serves without validators as well.
if (!str_ends_with($_SERVER['REQUEST_URI'], 'plain.mp4')) {
    return false;
}
header('Content-Type: video/mp4');
readfile(getenv('SITE') . '/plain.mp4.data');
