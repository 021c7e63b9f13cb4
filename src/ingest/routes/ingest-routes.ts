import { ingestRoute } from "./ingest.ts";
import { describeTableRoute, provisionTableRoute } from "./tables.ts";

export const INGEST_ROUTES = [ingestRoute, provisionTableRoute, describeTableRoute];
