import type { z } from "zod";

import { mayUseDatabase } from "../../auth/caller.ts";
import { defineRoute, describeRoute, jsonResponse, type Route } from "../route.ts";
import type { QueryDeps } from "./deps.ts";
import { schemaTree } from "./schemas.ts";
import { columnsOf } from "./tables.ts";

type Tree = z.output<typeof schemaTree>;

export const schemaRow = describeRoute({
  method: "GET",
  path: "/v1/catalog/schema",
  role: "read",
  tag: "Query",
  summary: "Databases, tables and columns",
  compress: true,
  responses: [{ status: 200, description: "The whole tree.", type: "application/json", schema: schemaTree }],
  errors: [],
});

/**
 * `GET /v1/catalog/schema`. The tree is cached, for at most the configured time and only while the catalog's schema
 * generation stands still: a client sees its own write at once, whichever process made it.
 */
export function schemaRoute(deps: QueryDeps): Route {
  let cached: { tree: Tree; generation: number; readAtMs: number } | undefined;
  const read = async (): Promise<Tree> => {
    const generation = await deps.catalog.schemaGeneration();
    const nowMs = deps.clock.monotonicMs();
    const fresh = cached?.generation === generation && nowMs - cached.readAtMs < deps.schemaCacheTtlMs;
    if (cached === undefined || !fresh) cached = { tree: await readTree(deps), generation, readAtMs: nowMs };
    return cached.tree;
  };
  return defineRoute({
    ...schemaRow,
    handle: async ({ caller }) => {
      const { databases } = await read();
      return jsonResponse(200, { databases: databases.filter(({ name }) => mayUseDatabase(caller, name)) });
    },
  });
}

async function readTree(deps: QueryDeps): Promise<Tree> {
  const databases = await deps.catalog.databases();
  return {
    databases: await Promise.all(
      databases.map(async ({ name }) => ({
        name,
        tables: (await deps.catalog.tables(name)).map((table) => ({
          name: table.name,
          columns: columnsOf(table),
          cluster_by: [...table.clusterBy],
        })),
      })),
    ),
  };
}
