import "../../core/reports.ts";
import { parentPort } from "node:worker_threads";
import { openConnection } from "../../db/sqlite/open.ts";
import { Reader } from "./reader.ts";
import { serve } from "../../db/sqlite/thread-protocol.ts";
import { CATALOG_ERRORS } from "./thread-errors.ts";
import { Writer } from "./writer.ts";

/** The catalog's threads: one writes, one does the large reads. Each has a connection of its own. */
serve(parentPort, CATALOG_ERRORS, (options) => {
  const connection = openConnection(options);
  const api = options.part === "writer" ? new Writer(connection) : new Reader(connection);
  return { api, close: () => connection.close() };
});
