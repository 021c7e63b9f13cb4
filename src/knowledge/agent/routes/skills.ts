import { z } from "zod";
import { originOf } from "../../../server/origin.ts";
import { defineRoute, jsonResponse } from "../../../server/route.ts";
import { nameSchemas } from "../../../server/schema-names.ts";
import { SKILL_LIMITS } from "../../skills/limits.ts";
import type { Skills } from "../../skills/skills.ts";

/** What the routes of skills work with. */
export type SkillRouteDeps = { skills: Skills };

const skill = z.object({
  name: z.string(),
  description: z.string().nullable(),
  source: z
    .enum(["shipped", "home", "directory"])
    .describe("The program, `ENGINE_HOME/skills`, or `ENGINE_SKILLS_DIR`."),
  enabled: z.boolean(),
  problems: z.array(z.string()).describe("Why it cannot be enabled; empty where it can."),
});
const enabledSet = z.object({ skills: z.array(z.string()) });

nameSchemas({ AgentSkill: skill, AgentEnabledSkills: enabledSet });

const common = { role: "read", tag: "Agent" } as const;
const enabledPath = "/v1/agent/skills/enabled";
const enabledResponses = [
  { status: 200, description: "Their names.", type: "application/json", schema: enabledSet },
] as const;

const listSkillsRoute = defineRoute({
  ...common,
  method: "GET",
  path: "/v1/agent/skills",
  summary: "Skills of the agent",
  description: "Those that come with the program, and those in the folders of the operator; folders are read anew.",
  responses: [
    {
      status: 200,
      description: "In the order in which a name is looked up.",
      type: "application/json",
      schema: z.object({ skills: z.array(skill), problems: z.array(z.string()).describe("Of the folders.") }),
    },
  ],
  errors: [],
  handler:
    ({ skills }: SkillRouteDeps) =>
    async () => {
      const { skills: found, problems } = await skills.list();
      const items: z.input<typeof skill>[] = found.map(
        ({ name, description = null, source, enabled, problems: own }) => {
          return { name, description, source, enabled, problems: own };
        },
      );
      return jsonResponse(200, { skills: items, problems });
    },
});

const getEnabledRoute = defineRoute({
  ...common,
  method: "GET",
  path: enabledPath,
  summary: "Names of the enabled skills",
  description: "Of those that are there now.",
  responses: enabledResponses,
  errors: [],
  handler:
    ({ skills }: SkillRouteDeps) =>
    async () =>
      jsonResponse(200, { skills: (await skills.enabled()).map(({ name }) => name) }),
});

const putEnabledRoute = defineRoute({
  ...common,
  method: "PUT",
  path: enabledPath,
  summary: "Choose the enabled skills",
  description: "Replaces the set of the installation. A name that is not there, or cannot be enabled, refuses all.",
  json: z.strictObject({
    skills: z.array(z.string().max(SKILL_LIMITS.nameChars)).max(SKILL_LIMITS.enabled),
  }),
  responses: enabledResponses,
  errors: ["bad_request_body", "insufficient_storage"],
  handler:
    ({ skills }: SkillRouteDeps) =>
    async (call) =>
      jsonResponse(200, { skills: await skills.enable(call.json.skills, originOf(call)) }),
});

export const SKILL_ROUTES = [listSkillsRoute, getEnabledRoute, putEnabledRoute];
