# The image as a container engine builds it. make image builds one without an
# engine and without a network.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /source
# Modules change seldom: they stay in the engine's cache.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH LDFLAGS
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags="-s -w $LDFLAGS" -o /crosswatch ./cmd/crosswatch

FROM gcr.io/distroless/static:nonroot
LABEL org.opencontainers.image.title="Crosswatch" \
      org.opencontainers.image.source="https://github.com/crosswatch-io/crosswatch" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /crosswatch /crosswatch
USER 65532:65532
ENTRYPOINT ["/crosswatch"]
