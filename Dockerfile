# Two commands:
#   docker build -t imagenet-prep .
#   docker run --rm -v /data:/data imagenet-prep demo /data/demo
# scripts/image_steps.py runs these steps in an empty root folder where there is no docker.
FROM debian:bookworm-slim
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates python3-venv
RUN useradd --create-home --uid 1000 prep
COPY . /opt/source
RUN python3 -m venv /opt/venv && /opt/venv/bin/pip install --no-cache-dir /opt/source
ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin
USER prep
WORKDIR /home/prep
ENTRYPOINT ["imagenet-prep"]
CMD ["--help"]
