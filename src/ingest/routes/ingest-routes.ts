import { ingestRoute } from "./ingest.ts";
import { otlpLogsRoute } from "./otlp-logs.ts";
import { describeTableRoute, provisionTableRoute } from "./tables.ts";

export const INGEST_ROUTES = [ingestRoute, otlpLogsRoute, provisionTableRoute, describeTableRoute];
