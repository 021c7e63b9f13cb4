import type { PartClient } from "../../db/sqlite/thread-client.ts";
import { checkVersion } from "../transfer/check-version.ts";
import type { CatalogReader, SchemaNumbers, TransferRow } from "../transfer/transfer.ts";
import type { Reader } from "./reader.ts";

/** The catalog as of now, read by a part of its own, which is closed with it. */
export async function openTransfer(part: PartClient<Reader>, schema: SchemaNumbers): Promise<CatalogReader> {
  const end = async (): Promise<void> => {
    try {
      await part.close();
    } finally {
      await part.terminate();
    }
  };
  try {
    const { version, tables } = await part.call("openTransfer");
    checkVersion(version, schema.sqlite);
    return { schema, tables, rows: (table) => rowsOf(part, table), close: end };
  } catch (error) {
    await part.terminate();
    throw error;
  }
}

async function* rowsOf(part: PartClient<Reader>, table: string): AsyncGenerator<TransferRow[]> {
  await part.call("startTransfer", table);
  for (;;) {
    const rows = await part.call("nextTransfer");
    if (rows.length === 0) return;
    yield rows;
  }
}
