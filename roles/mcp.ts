import type { Service } from "../src/core/lifecycle.ts";
import type { McpDeps, RowIngest } from "../src/knowledge/mcp/deps.ts";
import { McpHttp } from "../src/knowledge/mcp/http.ts";
import type { SealPool } from "../src/ingest/seal-pool.ts";
import { createIngest } from "./ingest.ts";
import type { Parts } from "./parts.ts";
import { openSealPool } from "./seal-pool.ts";
import type { Storage } from "./storage.ts";

/** What answers the routes of MCP in this process. */
export function mcpHere(deps: McpDeps): { mcp: McpHttp; service: Service } {
  const mcp = new McpHttp(deps);
  const service: Service = {
    name: "mcp",
    run: () => mcp.announce(),
    // The HTTP server, which drains first, waits for the answers.
    drain: async () => {},
    stop: async () => mcp.close(),
  };
  return { mcp, service };
}

/**
 * Takes the rows of tools in a process whose routes take none: a node for queries in a cluster. It writes as a node for
 * ingest does, and starts threads for that with the first rows.
 */
export function rowsHere(parts: Parts, storage: Storage, sealPool: SealPool | undefined): RowIngest {
  let opening: Promise<RowIngest> | undefined;
  const open = async (): Promise<RowIngest> =>
    createIngest(parts, storage, sealPool ?? (await openSealPool(parts))).service;
  return {
    async ingest(request) {
      opening ??= open().catch((error: unknown) => {
        opening = undefined;
        throw error;
      });
      return await (await opening).ingest(request);
    },
  };
}
