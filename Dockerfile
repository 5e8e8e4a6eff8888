# Three stages: npm brings the one script of others, so that pages need no CDN; the second installs,
# and refuses a script that is not the lock's; the third carries only what runs. tini reaps and
# passes signals, because the service spawns workers. The page is for outside the container, so it
# needs a token:
#   docker build -t longwatch .
#   docker run --rm -p 8400:8400 -e LONGWATCH_TOKEN=<16 characters or more> longwatch
# runs the demo; put `run SPEC.toml`, `serve` or any other command behind it for the real thing.
FROM node:22-slim AS npm
WORKDIR /assets
COPY app/web/assets.lock.json ./
RUN npm pack --silent "$(node -p 'const { htmx } = require("./assets.lock.json"); `${htmx.package}@${htmx.version}`')"

FROM python:3.11-slim AS build
WORKDIR /src
COPY requirements.lock ./
RUN python -m venv /opt/longwatch \
 && /opt/longwatch/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY . .
RUN /opt/longwatch/bin/pip install --no-cache-dir --no-deps .
COPY --from=npm /assets /tmp/npm
RUN /opt/longwatch/bin/longwatch assets import /tmp/npm --offline-assets /opt/assets

FROM python:3.11-slim
RUN apt-get update && apt-get install -y --no-install-recommends tini && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 1000 longwatch && install -d -o longwatch /data
COPY --from=build /opt/longwatch /opt/longwatch
COPY --from=build /opt/assets /opt/assets
ENV PATH=/opt/longwatch/bin:$PATH LONGWATCH_HOME=/data/longwatch-home LONGWATCH_HOST=0.0.0.0 \
    LONGWATCH_OFFLINE_ASSETS=/opt/assets
EXPOSE 8400
USER longwatch
WORKDIR /data
VOLUME /data
HEALTHCHECK --interval=30s --timeout=5s CMD ["longwatch", "status", "--json"]
ENTRYPOINT ["tini", "-g", "--", "longwatch"]
CMD ["demo"]
