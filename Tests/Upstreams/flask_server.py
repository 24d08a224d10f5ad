"""Files with ranges and validators, and "…plain.mp4" as a body without either."""

import os
import pathlib

from flask import Flask, Response, send_file

site = pathlib.Path(os.environ["SITE"])
app = Flask(__name__)


@app.get("/<path>")
def serve(path):
    if path.endswith("plain.mp4"):
        return Response((site / "plain.mp4.data").read_bytes(), mimetype="video/mp4")
    if not (site / path).is_file():
        return "not found", 404
    return send_file(site / path, conditional=True, max_age=0)


app.run("127.0.0.1", int(os.environ["PORT"]), threaded=True)
