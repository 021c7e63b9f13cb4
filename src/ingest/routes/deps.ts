import type { Catalog } from "../../catalog/catalog.ts";
import type { IngestService } from "../ingest.ts";

/** What ingest, and the administration of tables, work with. */
export type IngestDeps = {
  ingest: IngestService;
  catalog: Catalog;
  /** Where OTLP logs go. */
  otlpDatabase: string;
};
