# The service in a container: docker build -t sparingly . && docker run -p 127.0.0.1:8000:8000 -v sparingly:/store sparingly --classes cat,dog
FROM python:3.11-slim AS build
WORKDIR /build
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
ARG TORCH_INDEX=""
RUN python -m venv /venv \
 && /venv/bin/pip install --no-cache-dir --constraint constraints.txt ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch \
 && /venv/bin/pip install --no-cache-dir --constraint constraints.txt ".[service,postgres]"

FROM python:3.11-slim
RUN useradd --system --create-home --uid 10001 sparingly && install -d -o sparingly -m 700 /store
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 SPARINGLY_STORE=/store
USER sparingly
VOLUME /store
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=6s --start-period=60s \
  CMD python -c "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/ready', timeout=5)"
ENTRYPOINT ["sparingly", "serve", "--host", "0.0.0.0"]
