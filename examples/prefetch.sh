#!/usr/bin/env bash
# Creates a prefetch job for files of one origin and follows its events: prefetch.sh ORIGIN PATH…; exit 0 on success.
# Needs curl 7.82 and jq. LARDER_URL is the service (http://127.0.0.1:8080), LARDER_TOKEN its admin token if it has one.
set -euo pipefail

if (($# < 2)); then
    echo "usage: prefetch.sh ORIGIN PATH…" >&2
    exit 64
fi
base=${LARDER_URL:-http://127.0.0.1:8080}
origin=$1
shift

# The token reaches curl through a file descriptor: arguments of processes are visible to other users.
call() {
    curl --silent --show-error --fail-with-body \
        --header @<(printf '%s' "${LARDER_TOKEN:+Authorization: Bearer $LARDER_TOKEN}") "$@"
}

order=$(jq -nc --arg origin "$origin" '{label: "prefetch.sh", items: [$ARGS.positional[] | {origin: $origin, path: .}]}' \
    --args -- "$@")
job=$(call --json "$order" "$base/v1/jobs") || {
    jq -r '.detail? // .' <<<"$job" >&2
    exit 1
}
id=$(jq -r .jobId <<<"$job")
echo "job $id"

# The stream ends with the job. If the connection breaks earlier, the loop opens another stream.
state=$(jq -r .state <<<"$job")
while [[ $state == queued || $state == running ]]; do
    while IFS= read -r line; do
        [[ $line == data:* ]] || continue
        jq -r '"\(.state): \(.itemsDone) of \(.itemsTotal) files, \(.bytesDone) of \(.bytesTotal // "?") bytes"' \
            <<<"${line#data:}"
    done < <(call --no-buffer "$base/v1/jobs/$id/events" || sleep 1)
    state=$(call "$base/v1/jobs/$id" | jq -r .state)
done

[[ $state == succeeded ]] || {
    call "$base/v1/jobs/$id/items" | jq -r '.items[] | select(.error != null) | "\(.key // .path): \(.error.message)"' >&2
    echo "job $id: $state" >&2
    exit 1
}
