# The service in a slim image: non-root, no compiler, no package index at run time.
# Build from the repository's root:  docker build --tag nodewise .
# Pin the base by digest where you build: --build-arg BASE=python@sha256:...
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /source
# The builder's own tools and the service's dependencies, both pinned with hashes, in two environments: only the second ships.
COPY requirements/build.txt requirements/runtime.txt requirements/
RUN python -m venv /build-tools \
    && /build-tools/bin/pip install --require-hashes --requirement requirements/build.txt \
    && python -m venv /opt/nodewise \
    && /opt/nodewise/bin/pip install --require-hashes --requirement requirements/runtime.txt
COPY LICENSE README.md pyproject.toml ./
COPY protos protos
COPY clients/python clients/python
COPY clients/cli clients/cli
COPY server server
COPY plugins plugins
RUN for project in protos clients/python .; do \
        /build-tools/bin/python -m build --no-isolation --wheel --outdir /wheels "$project" || exit 1; \
    done \
    && /opt/nodewise/bin/pip install --no-deps --no-index /wheels/*.whl \
    && /opt/nodewise/bin/pip check \
    && /opt/nodewise/bin/python -m compileall -q /opt/nodewise/lib

FROM ${BASE}
RUN groupadd --system --gid 10001 nodewise \
    && useradd --system --uid 10001 --gid nodewise --home-dir /var/lib/nodewise --create-home nodewise
COPY --from=build /opt/nodewise /opt/nodewise
COPY LICENSE /usr/share/doc/nodewise/LICENSE
ENV PATH=/opt/nodewise/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# By number, so that an orchestrator can see that it is not root.
USER 10001:10001
WORKDIR /var/lib/nodewise
VOLUME ["/var/lib/nodewise"]
EXPOSE 50551
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
    CMD ["nodewise", "health", "--server", "127.0.0.1:50551"]
# Beyond loopback the service starts only once it is said who may connect (docs/guides/security.md): settings come by the
# environment (NODEWISE_TLS__CERTIFICATE, NODEWISE_AUTHENTICATION, ...), or for a trial NODEWISE_ALLOW_PLAINTEXT=true and
# NODEWISE_ALLOW_ANONYMOUS=true.
# Exec form: SIGTERM reaches the service itself, which drains and exits 0.
ENTRYPOINT ["nodewise"]
CMD ["serve", "--listen", "0.0.0.0:50551", "--store", "sqlite:////var/lib/nodewise/nodewise.db"]
