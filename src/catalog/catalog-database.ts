import type { Catalog } from "./catalog.ts";
import type { RecordStore } from "../db/records.ts";
import type { Signals } from "../db/signals.ts";

/** A catalog with the records that lie beside it, and the signals of the nodes that share it. */
export type CatalogDatabase = Catalog & { readonly records: RecordStore; readonly signals: Signals };
