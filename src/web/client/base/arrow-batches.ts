import { tableFromIPC, type Table } from "@uwdata/flechette";
import { readArrowMessages } from "./arrow-messages.ts";

/**
 * The record batches of an Arrow IPC stream as they arrive, each as a table of its own. Values are exact where they are
 * taken raw (`table.getChildAt(i).data[0].values`): `at()` makes floats of nanoseconds, and throws for large integers.
 */
export async function* readArrowBatches(body: ReadableStream<Uint8Array>): AsyncGenerator<Table, void, undefined> {
  let schema: Uint8Array | undefined;
  // Later dictionaries add to earlier ones, so all of them go with each batch.
  const dictionaries: Uint8Array[] = [];
  for await (const { kind, bytes } of readArrowMessages(body)) {
    if (kind === "schema") schema = bytes;
    else if (kind === "dictionary") dictionaries.push(bytes);
    else if (kind === "batch") {
      if (schema === undefined) throw new Error("the answer has rows before its columns");
      yield tableFromIPC([schema, ...dictionaries, bytes], { useBigInt: true });
    }
  }
}
