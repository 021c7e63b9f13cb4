import { z } from "zod";
import * as kinds from "../../config/kinds.ts";
import { EngineError } from "../../core/errors.ts";
import { originOf } from "../../server/origin.ts";
import { defineRoute, jsonResponse } from "../../server/route.ts";
import { nameSchemas } from "../../server/schema-names.ts";
import { deleted, deletedResponse, timeOf } from "../../server/schemas.ts";
import { ENGINE_KINDS, type EngineRegistry, type NamedEngine } from "../engines/registry.ts";

/** Query engines of others, to which big queries are sent. */

export type QueryEngineDeps = { engines: EngineRegistry };

const engineName = z.string().regex(/^[a-z][a-z0-9_-]{0,62}$/, "accepted is a-z, then a-z, 0-9, _ and -, at most 63");
const headerText = z.string().regex(/^[\x21-\x7e]{1,128}$/, "accepted are 1 to 128 visible ASCII characters");

const engineBody = z.object({
  name: z.string(),
  kind: z.enum(ENGINE_KINDS),
  url: z.string(),
  catalog: z.string(),
  user: z.string().nullable(),
  credential_id: z.string().nullable(),
  created_by: z.string(),
  created_at: z.string(),
});

nameSchemas({ QueryEngine: engineBody });

const PATH = "/v1/admin/query-engines";
/** An engine sees with its own credential, whatever databases the caller's token is limited to. */
const common = { role: "admin", tag: "Query engines", unscoped: true } as const;
const namePath = z.object({ name: z.string() });

export const addQueryEngineRoute = defineRoute({
  ...common,
  method: "POST",
  path: PATH,
  summary: "Name a query engine",
  description:
    "Callers who may use every database send it queries by that name. It is not asked now: `…/test` does that. For admins " +
    "whose token is not limited to databases. Audited.",
  json: z.strictObject({
    name: engineName,
    kind: z.enum(ENGINE_KINDS),
    url: z
      .string()
      .max(2_048)
      .describe("`http://` or `https://`, without a path; `https` where there is a credential."),
    catalog: headerText.describe("Of that engine: where it has the tables of this program."),
    user: headerText.optional().describe("Who this program is there; else who the credential says, or `engine`."),
    credential_id: z
      .string()
      .min(1)
      .max(100)
      .optional()
      .describe("Of the kind `basic`, `pat` or `api_key`. Without one no secret is sent."),
  }),
  responses: [{ status: 201, description: "Named.", type: "application/json", schema: engineBody }],
  errors: ["conflict", "not_found", "not_configured", "insufficient_storage"],
  handler:
    ({ engines }: QueryEngineDeps) =>
    async (call) => {
      const { name, kind, url, catalog, user, credential_id: credentialId } = call.json;
      const engine = { name, kind, url: originIn(url), catalog, user, credentialId };
      return jsonResponse(201, bodyOf(await engines.add(engine, originOf(call))));
    },
});

export const listQueryEnginesRoute = defineRoute({
  ...common,
  method: "GET",
  path: PATH,
  summary: "The query engines that have been named",
  responses: [
    {
      status: 200,
      description: "By name.",
      type: "application/json",
      schema: z.object({ query_engines: z.array(engineBody) }),
    },
  ],
  errors: [],
  handler:
    ({ engines }: QueryEngineDeps) =>
    async () =>
      jsonResponse(200, { query_engines: (await engines.list()).map(bodyOf) }),
});

export const testQueryEngineRoute = defineRoute({
  ...common,
  method: "POST",
  path: `${PATH}/{name}/test`,
  summary: "Have a query engine answer `SELECT 1`",
  params: namePath,
  responses: [
    {
      status: 200,
      description: "It answered.",
      type: "application/json",
      schema: z.object({ ok: z.literal(true), elapsed_ms: z.int() }),
    },
  ],
  errors: ["not_found", "engine_failed", "engine_timeout", "invalid_query", "not_configured"],
  handler:
    ({ engines }: QueryEngineDeps) =>
    async (call) => {
      const { elapsedMs } = await engines.test(call.params.name, originOf(call), call.request.signal);
      return jsonResponse(200, { ok: true, elapsed_ms: elapsedMs });
    },
});

export const removeQueryEngineRoute = defineRoute({
  ...common,
  method: "DELETE",
  path: `${PATH}/{name}`,
  summary: "Forget a query engine",
  description: "What it runs for somebody now runs on. Audited.",
  params: namePath,
  responses: [deletedResponse],
  errors: ["not_found", "insufficient_storage"],
  handler:
    ({ engines }: QueryEngineDeps) =>
    async (call) => {
      await engines.remove(call.params.name, originOf(call));
      return deleted();
    },
});

/** Without a path: the engine's own answers say where to go on, from the root. */
function originIn(text: string): string {
  const url = kinds.baseUrl.parse(text, { baseDir: "", userHome: "" });
  if (url !== undefined && url === new URL(url).origin) return url;
  throw new EngineError(
    "bad_request_body",
    "url: accepted is an http:// or https:// address without user, path, query",
  );
}

function bodyOf({ name, kind, url, catalog, user, ...engine }: NamedEngine): z.output<typeof engineBody> {
  return {
    name,
    kind,
    url,
    catalog,
    user: user ?? null,
    credential_id: engine.credentialId ?? null,
    created_by: engine.createdBy,
    created_at: timeOf(engine.createdAtMs),
  };
}
