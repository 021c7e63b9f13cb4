import type { Catalog } from "./catalog.ts";
import type { RecordStore } from "../db/records.ts";
import type { SchemaUpkeep } from "../db/schema-upkeep.ts";
import type { Signals } from "../db/signals.ts";

/** A catalog with the records that lie beside it, the signals of the nodes that share it, and what keeps its schema. */
export type CatalogDatabase = Catalog & {
  readonly records: RecordStore;
  readonly signals: Signals;
  readonly upkeep: SchemaUpkeep;
};
