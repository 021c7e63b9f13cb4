import { z } from "zod";

import { mayUseDatabase } from "../../auth/caller.ts";
import { defineRoute, jsonResponse } from "../../server/route.ts";
import type { QueryDeps } from "./deps.ts";
import { nameSchemas } from "../../server/schema-names.ts";
import { clusterBy, column, columnsOf, inferTypes } from "../../server/schemas.ts";

const schemaTree = z.object({
  databases: z.array(
    z.object({
      name: z.string(),
      tables: z.array(
        z.object({ name: z.string(), columns: z.array(column), cluster_by: clusterBy, infer_types: inferTypes }),
      ),
    }),
  ),
});

type Tree = z.output<typeof schemaTree>;

nameSchemas({ Schema: schemaTree });

export const schemaRoute = defineRoute({
  method: "GET",
  path: "/v1/catalog/schema",
  role: "read",
  tag: "Query",
  summary: "Databases, tables and columns",
  compress: true,
  responses: [{ status: 200, description: "The whole tree.", type: "application/json", schema: schemaTree }],
  errors: [],
  handler: (deps: QueryDeps) => {
    let cached: { tree: Tree; generation: number; readAtMs: number } | undefined;
    const read = async (): Promise<Tree> => {
      const generation = await deps.catalog.schemaGeneration();
      const nowMs = deps.clock.monotonicMs();
      const fresh = cached?.generation === generation && nowMs - cached.readAtMs < deps.schemaCacheTtlMs;
      if (cached === undefined || !fresh) cached = { tree: await readTree(deps), generation, readAtMs: nowMs };
      return cached.tree;
    };
    return async ({ caller }) => {
      const { databases } = await read();
      return jsonResponse(200, { databases: databases.filter(({ name }) => mayUseDatabase(caller, name)) });
    };
  },
});

/**
 * `GET /v1/catalog/schema`. The tree is cached, for at most the configured time and only while the catalog's schema
 * generation stands still: a client sees its own write at once, whichever process made it.
 */

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
          infer_types: table.inferTypes ?? null,
        })),
      })),
    ),
  };
}
