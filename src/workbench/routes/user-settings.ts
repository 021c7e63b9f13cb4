import { z } from "zod";
import type { FeatureDeps } from "../../feature/feature.ts";
import { defineRoute, jsonResponse } from "../../server/route.ts";
import { isKeptText, keptJson } from "../../server/schemas.ts";
import { WORKBENCH_LIMITS } from "../limits.ts";
import { UserSettings } from "../user-settings.ts";

const settings = z
  .record(z.string(), keptJson)
  .refine((value) => Object.keys(value).every(isKeptText), "names are Unicode without NUL");
const body = z.object({ settings: z.record(z.string(), z.unknown()) });
const PATH = "/v1/auth/settings";
const common = { role: "read", tag: "Workbench" } as const;

const getRoute = defineRoute({
  ...common,
  method: "GET",
  path: PATH,
  summary: "What pages keep for the caller",
  responses: [{ status: 200, description: "Empty at first.", type: "application/json", schema: body }],
  errors: [],
  handler: ({ records }: FeatureDeps) => {
    const kept = new UserSettings(records);
    return async ({ caller }) => jsonResponse(200, { settings: await kept.get(caller) });
  },
});

const saveRoute = defineRoute({
  ...common,
  method: "PUT",
  path: PATH,
  summary: "Keep something for the caller",
  description: `In the place of all that was kept. At most ${WORKBENCH_LIMITS.settingsBytes / 1_024} KiB; no secrets.`,
  json: z.strictObject({ settings }),
  responses: [{ status: 200, description: "As it is then.", type: "application/json", schema: body }],
  errors: ["insufficient_storage"],
  handler: ({ records }: FeatureDeps) => {
    const kept = new UserSettings(records);
    return async ({ caller, json }) => jsonResponse(200, { settings: await kept.save(json.settings, caller) });
  },
});

export const SETTINGS_ROUTES = [getRoute, saveRoute];
