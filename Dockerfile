# The program alone: docker build -t nodecast:0.1.0 .
FROM rust:1.95-slim AS build
WORKDIR /nodecast
COPY . .
RUN cargo build --release --locked -p nodecast

# A C library and nothing else: no shell, no package manager, and a user that may write nothing.
FROM gcr.io/distroless/cc-debian13:nonroot
LABEL org.opencontainers.image.title="nodecast" org.opencontainers.image.licenses="MIT OR Apache-2.0"
COPY --from=build /nodecast/target/release/nodecast /usr/local/bin/nodecast
WORKDIR /work
ENTRYPOINT ["nodecast"]
