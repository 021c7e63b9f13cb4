import {
  apiFailure,
  connectionFailure,
  readApiError,
  readText,
  type EngineClient,
  type Target,
} from "../../../client/client.ts";
import { CliError } from "../../../client/failure.ts";

/** Databases, tables and columns, as far as the caller may see them. */
export type SchemaTree = readonly SchemaDatabase[];
export type SchemaDatabase = { name: string; tables: readonly SchemaTable[] };
export type SchemaTable = { name: string; columns: readonly SchemaColumn[]; clusterBy: readonly string[] };
export type SchemaColumn = { name: string; type: string };

const TIMEOUT_MS = 30_000;
/** Thousands of tables with many columns. */
const LIMIT_BYTES = 256 * 1024 * 1024;

/** @throws CliError */
export async function readSchema(client: EngineClient, target: Target): Promise<SchemaTree> {
  try {
    const reply = await client.send({ method: "GET", path: "/v1/catalog/schema", timeoutMs: TIMEOUT_MS });
    if (reply.status !== 200) throw apiFailure(await readApiError(reply), target);
    return treeIn(await readText(reply, LIMIT_BYTES), target);
  } catch (error) {
    throw error instanceof CliError ? error : connectionFailure(error, target);
  }
}

type Sent = {
  databases: readonly {
    name: string;
    tables: readonly { name: string; columns: readonly SchemaColumn[]; cluster_by?: readonly string[] }[];
  }[];
};

function treeIn(text: string, { url }: Target): SchemaTree {
  try {
    return (JSON.parse(text) as Sent).databases.map(({ name, tables }) => ({
      name,
      tables: tables.map(({ cluster_by: clusterBy = [], ...table }) => ({ ...table, clusterBy })),
    }));
  } catch (error) {
    throw new CliError(`what answers at ${url} is no engine: its answer is no schema`, 1, { cause: error });
  }
}
