// Ranges without validators, ranges with a weak ETag and no 304, and chunks without a length.
const fs = require("fs");
const http = require("http");

const site = process.env.SITE;
http.createServer((request, response) => {
    const kind = ["plain", "weak", "chunked"].find((name) => request.url.endsWith(`${name}.mp4`));
    if (!kind) {
        response.writeHead(404).end();
        return;
    }
    const data = fs.readFileSync(`${site}/${kind}.mp4.data`);
    response.setHeader("Content-Type", "video/mp4");
    if (kind === "chunked") {
        for (let at = 0; at < data.length; at += 100000) response.write(data.subarray(at, at + 100000));
        response.end();
        return;
    }
    if (kind === "weak") response.setHeader("ETag", 'W/"1"');
    response.setHeader("Accept-Ranges", "bytes");
    const match = /^bytes=(\d*)-(\d*)$/.exec(request.headers.range || "");
    let [first, end] = [0, data.length];
    if (match && match[1]) [first, end] = [Number(match[1]), match[2] ? Math.min(Number(match[2]) + 1, end) : end];
    else if (match) first = end - Number(match[2]);
    if (match) response.setHeader("Content-Range", `bytes ${first}-${end - 1}/${data.length}`);
    response.setHeader("Content-Length", end - first);
    response.writeHead(match ? 206 : 200).end(request.method === "HEAD" ? undefined : data.subarray(first, end));
}).listen(Number(process.env.PORT), "127.0.0.1");
