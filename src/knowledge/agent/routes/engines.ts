import { z } from "zod";
import { EngineError } from "../../../core/errors.ts";
import { defineRoute, jsonResponse, type Call } from "../../../server/route.ts";
import { ENGINE_KINDS } from "../engines/engine.ts";
import type { AgentEngines, ChooserOrigin } from "../engines/engines.ts";
import { engineFields, toFields } from "../engines/fields.ts";

/** What the routes of engines work with. */
export type EngineRouteDeps = { engines: AgentEngines };

const TAG = "Agent";
const ROLE_NOTE = "ENGINE_AGENT_ENGINE_ROLE may ask for more than the role `read`.";

function originOf({
  caller,
  clientAddress: address,
  requestId,
}: Pick<Call, "caller" | "clientAddress" | "requestId">): ChooserOrigin {
  return { caller, address, requestId };
}

const engineMenus = z.object({
  engines: z.array(
    z.object({
      kind: z.enum(ENGINE_KINDS),
      models: z.array(z.string()).describe("To choose from; the engine takes any other name too."),
      source: z
        .enum(["provider", "built_in"])
        .describe("`provider`: its own list, at most 10 minutes old. `built_in`: it has no key here, or gave no list."),
      has_operator_key: z.boolean().describe("Whether it can be asked without a credential."),
      hosts: z.array(z.string()).describe("Of `localmodel`: what `host` may be, the default first."),
    }),
  ),
  active: engineFields.nullable().describe("Null where nobody has chosen one."),
});

const enginesRoute = defineRoute({
  method: "GET",
  path: "/v1/agent/engines",
  role: "read",
  tag: TAG,
  summary: "Engines to choose from",
  responses: [{ status: 200, description: "With their models.", type: "application/json", schema: engineMenus }],
  errors: [],
  handler:
    ({ engines }: EngineRouteDeps) =>
    async (call) => {
      const { engines: choices, active } = await engines.menus(originOf(call));
      const shown = choices.map(({ kind, models, source, hasOperatorKey: has_operator_key, hosts }) => {
        return { kind, models, source, has_operator_key, hosts };
      });
      return jsonResponse(200, { engines: shown, active: active === undefined ? null : toFields(active) });
    },
});

const engineRoute = defineRoute({
  method: "GET",
  path: "/v1/agent/engine",
  role: "read",
  tag: TAG,
  summary: "The engine that answers questions",
  responses: [{ status: 200, description: "As it was saved.", type: "application/json", schema: engineFields }],
  errors: ["not_found", "not_configured"],
  handler:
    ({ engines }: EngineRouteDeps) =>
    async () => {
      const config = await engines.current();
      if (config !== undefined) return jsonResponse(200, toFields(config));
      throw new EngineError("not_found", "the agent has no engine yet: choose one with PUT /v1/agent/engine");
    },
});

const saveEngineRoute = defineRoute({
  method: "PUT",
  path: "/v1/agent/engine",
  role: "read",
  tag: TAG,
  summary: "Choose the engine",
  description: `Everybody's questions are answered by it from then on. The provider is not asked. Audited. ${ROLE_NOTE}`,
  json: engineFields,
  responses: [{ status: 200, description: "As it is saved.", type: "application/json", schema: engineFields }],
  errors: ["bad_request_body", "not_configured"],
  handler:
    ({ engines }: EngineRouteDeps) =>
    async ({ json, ...call }) =>
      jsonResponse(200, toFields(await engines.save(json, originOf(call)))),
});

const testEngineRoute = defineRoute({
  method: "POST",
  path: "/v1/agent/engine/test",
  role: "read",
  tag: TAG,
  summary: "Test an engine",
  description:
    "Has it say one token, with its key and over the way that questions take, and saves nothing. Some providers take no " +
    `fewer than 16 tokens; a model with a budget to think may use that besides. The key's use is audited. ${ROLE_NOTE}`,
  json: engineFields,
  responses: [
    {
      status: 200,
      description: "It answered.",
      type: "application/json",
      schema: z.object({ ok: z.literal(true), kind: z.enum(ENGINE_KINDS), model: z.string() }),
    },
  ],
  errors: ["bad_request_body", "engine_failed", "engine_timeout", "cancelled", "not_configured"],
  handler:
    ({ engines }: EngineRouteDeps) =>
    async ({ json, ...call }) => {
      const { kind, model } = await engines.probe(json, originOf(call), call.request.signal);
      return jsonResponse(200, { ok: true, kind, model });
    },
});

export const ENGINE_ROUTES = [enginesRoute, engineRoute, saveEngineRoute, testEngineRoute] as const;
