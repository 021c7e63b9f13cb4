import { parseColumnType, type ColumnSpec } from "../../../format/types.ts";
import { apiFailure, connectionFailure, readApiError, readText, type EngineClient } from "../../../client/client.ts";
import { CliError } from "../../../client/failure.ts";
import type { PushTarget } from "./send-batch.ts";

const TIMEOUT_MS = 30_000;

/** The columns of the table as it is; undefined when there is no such table. */
export async function tableColumns(client: EngineClient, target: PushTarget): Promise<ColumnSpec[] | undefined> {
  const { database, table } = target;
  const path = `/v1/admin/databases/${encodeURIComponent(database)}/tables/${encodeURIComponent(table)}`;
  try {
    const reply = await client.send({ method: "GET", path, timeoutMs: TIMEOUT_MS });
    if (reply.status === 200) return columnsIn(await readText(reply), target.url);
    const error = await readApiError(reply);
    if (reply.status === 404) return undefined;
    throw apiFailure(error, target);
  } catch (error) {
    throw error instanceof CliError ? error : connectionFailure(error, target);
  }
}

function columnsIn(text: string, url: string): ColumnSpec[] {
  try {
    const { columns } = JSON.parse(text) as { columns: readonly { name: string; type: string }[] };
    return columns.flatMap(({ name, type }) => {
      const parsed = parseColumnType(type);
      return parsed === undefined ? [] : [{ name, type: parsed }];
    });
  } catch (error) {
    throw new CliError(`what answers at ${url} is no engine: its answer is no table`, 1, { cause: error });
  }
}
