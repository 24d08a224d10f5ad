ARG BUILD_IMAGE=swift:6.2-bookworm
ARG RUN_IMAGE=debian:bookworm-slim

FROM ${BUILD_IMAGE} AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends libcurl4-openssl-dev libsqlite3-dev libssl-dev pkg-config \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
# The dependencies have a separate layer, because they change less often than the code.
COPY Package.swift ./
RUN swift package resolve
COPY . .
RUN scripts/release --product larder \
    && install -D --strip .build/release/larder /out/larder

FROM ${RUN_IMAGE}
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates libcurl4 libsqlite3-0 libssl3 libstdc++6 tzdata \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 larder \
    && useradd --uid 10001 --gid larder --no-create-home --home-dir /var/lib/larder --shell /usr/sbin/nologin larder \
    && install -d -o larder -g larder -m 0750 /var/lib/larder
COPY --from=build /out/larder /usr/local/bin/larder
COPY LICENSE /usr/share/doc/larder/LICENSE

# Settings are environment variables, so that the health check uses the same ones. On a non-loopback address the service
# requires a token: LARDER_TOKEN or LARDER_TOKEN_FILE. LARDER_CONFIG names a configuration file.
ENV LARDER_LISTEN_ADDRESS=0.0.0.0:8080 LARDER_DATA_DIRECTORY=/var/lib/larder
USER larder
WORKDIR /var/lib/larder
VOLUME /var/lib/larder
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 CMD ["larder", "healthcheck"]
ENTRYPOINT ["larder"]
CMD ["serve"]
