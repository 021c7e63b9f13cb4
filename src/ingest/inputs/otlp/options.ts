import * as kinds from "../../../config/kinds.ts";
import { option } from "../../../config/option.ts";

/** Logs by OTLP: where they come in, and where they go. */
export const OTLP_OPTIONS = {
  otlpAddr: option({
    env: "ENGINE_OTLP_ADDR",
    toml: "ingest.otlp_addr",
    kind: kinds.addressOrOff,
    default: "off",
    side: "S",
    doc:
      "Where servers with the role `ingest` take OTLP logs over gRPC (by convention port 4317); `off` disables it. Over " +
      "HTTP they take them on their HTTP port, as `POST /v1/logs`.",
  }),
  otlpDatabase: option({
    env: "ENGINE_OTLP_DATABASE",
    toml: "ingest.otlp_database",
    kind: kinds.databaseName,
    default: "default",
    side: "S",
    doc: "The database whose table `otel_logs` gets OTLP logs. Both are created with the first.",
  }),
} as const;
