# Two stages: the first installs, the second carries only what runs. tini reaps and passes signals,
# because the service spawns workers.
FROM python:3.11-slim AS build
WORKDIR /src
COPY requirements.lock ./
RUN python -m venv /opt/longwatch \
 && /opt/longwatch/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY . .
RUN /opt/longwatch/bin/pip install --no-cache-dir --no-deps .

FROM python:3.11-slim
RUN apt-get update && apt-get install -y --no-install-recommends tini && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 1000 longwatch && install -d -o longwatch /data
COPY --from=build /opt/longwatch /opt/longwatch
ENV PATH=/opt/longwatch/bin:$PATH LONGWATCH_HOME=/data/longwatch-home
USER longwatch
WORKDIR /data
VOLUME /data
HEALTHCHECK --interval=30s --timeout=5s CMD ["longwatch", "status", "--json"]
ENTRYPOINT ["tini", "-g", "--", "longwatch"]
CMD ["demo"]
