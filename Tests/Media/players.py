"""Players for the media test: each plays a span of a URL and returns the seconds it has played."""

import http.server
import json
import pathlib
import queue
import shutil
import subprocess
import tempfile
import threading
import urllib.parse


def run(command, timeout=120):
    """Runs a program without input; returns (exit code, output)."""
    try:
        done = subprocess.run(
            list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=timeout,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, f"not finished within {timeout} s"
    return done.returncode, done.stdout + done.stderr


def ffmpeg(*arguments, timeout=300):
    return run(["ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error", *arguments], timeout)


class Player:
    """A player; its program has the same name."""

    name = ""

    @classmethod
    def is_installed(cls):
        return shutil.which(cls.name) is not None

    def stop(self):
        pass


class FFmpeg(Player):
    """Decodes the span; stops at the first error."""

    name = "ffmpeg"

    def play(self, url, start, seconds):
        """Returns the played seconds and the last message."""
        extra = ["-allowed_extensions", "ALL"] if url.endswith(".m3u8") else []
        with tempfile.NamedTemporaryFile(prefix="larder-media.") as progress:
            code, output = ffmpeg(
                "-xerror", "-progress", progress.name, *extra, "-ss", start, "-t", seconds, "-i", url, "-f", "null", "-"
            )
            entries = dict(line.split("=", 1) for line in progress.read().decode().splitlines() if "=" in line)
        message = (output.strip().splitlines() or [""])[-1]
        if code != 0:
            return 0.0, message or f"exit {code}"
        frames = int(entries.get("frame", 0))
        time = entries.get("out_time_us", "N/A")
        return (frames / 25 if frames else int(time) / 1e6 if time != "N/A" else 0.0), message


class MPV(Player):
    """Plays the span as fast as possible and stores the decoded sound."""

    name = "mpv"

    def play(self, url, start, seconds):
        with tempfile.NamedTemporaryFile(prefix="larder-media.") as sound:
            code, output = run(
                [
                    "mpv", "--no-config", "--vo=null", "--untimed", "--ao=pcm", f"--ao-pcm-file={sound.name}",
                    "--ao-pcm-waveheader=no", "--audio-format=s16", "--audio-channels=mono", "--audio-samplerate=44100",
                    "--ytdl=no", f"--start={start}", f"--length={seconds}",
                    "--no-terminal", "--msg-level=all=error", url,
                ]
            )  # fmt: skip
            played = pathlib.Path(sound.name).stat().st_size / (2 * 44100)
        return (played if code == 0 else 0.0), (output.strip().splitlines() or [""])[-1]


PAGE = """<!doctype html><meta charset=utf-8><video muted></video><script>
const asked = new URLSearchParams(location.search), start = +asked.get("start"), end = start + +asked.get("seconds");
const video = document.querySelector("video");
let last = start;
const report = (what) => fetch("/report", {method: "POST", body: JSON.stringify([last - start, what])});
const isOver = () => {
  if (!video.seeking && video.readyState > 1) last = Math.max(last, video.currentTime);
  if (last >= end - 0.3) { video.pause(); report(""); return true; }
};
video.onerror = () => report(video.error.message || "error " + video.error.code);
video.onloadedmetadata = () => { if (start) video.currentTime = start; video.playbackRate = 4; video.play(); };
video.onended = () => { if (!isOver()) report("ended"); };
video.ontimeupdate = isOver;
setTimeout(() => report("stalled"), 15000);
video.src = asked.get("source");
</script>"""


class Chromium(Player):
    """Plays the span in a video element, at four times the normal speed."""

    name = "chromium"

    def __init__(self):
        reports = self.reports = queue.Queue()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = PAGE.encode() if self.path.startswith("/?") else b""
                self.send_response(200 if body else 404)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                reports.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def play(self, url, start, seconds):
        query = urllib.parse.urlencode({"source": url, "start": start, "seconds": seconds})
        page = f"http://127.0.0.1:{self.server.server_port}/?{query}"
        profile = tempfile.mkdtemp(prefix="larder-media.")
        process = subprocess.Popen(
            [
                "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--mute-audio",
                "--disable-background-networking", "--autoplay-policy=no-user-gesture-required",
                f"--user-data-dir={profile}", page,
            ],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            played, what = json.loads(self.reports.get(timeout=60))
        except queue.Empty:
            played, what = 0.0, "no report within 60 s"
        finally:
            process.kill()
            process.wait()
            shutil.rmtree(pathlib.Path(profile), ignore_errors=True)
            while not self.reports.empty():
                self.reports.get()
        return float(played), what

    def stop(self):
        self.server.shutdown()


class GStreamer(Player):
    """Plays the span with playbin, at four times the normal speed."""

    name = "gstreamer"
    #: The Python of the system, for which Debian packages the bindings.
    command = ["/usr/bin/python3", str(pathlib.Path(__file__).resolve().parent / "gstreamer.py")]

    @classmethod
    def is_installed(cls):
        return shutil.which("gst-launch-1.0") is not None and run(["/usr/bin/python3", "-c", "import gi"])[0] == 0

    def play(self, url, start, seconds):
        code, output = run([*self.command, url, start, seconds])
        played = [line.removeprefix("played ") for line in output.splitlines() if line.startswith("played ")]
        if code != 0 or not played:
            return 0.0, (output.strip().splitlines() or [f"exit {code}"])[-1]
        seconds, _, message = played[-1].partition(" ")
        return float(seconds), message


ALL = [FFmpeg, MPV, Chromium, GStreamer]
