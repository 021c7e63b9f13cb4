import { z } from "zod";
import type { FeatureDeps } from "../../../src/feature/feature.ts";
import { defineRoute, jsonResponse } from "../../../src/server/route.ts";
import { PAINT } from "./paint.ts";

const made = z.object({ id: z.uuid(), job_id: z.uuid() });
const listed = z.object({ toys: z.array(z.object({ name: z.string(), colour: z.string().nullable() })) });

const makeToyRoute = defineRoute({
  method: "POST",
  path: "/v1/toys",
  role: "write",
  tag: "Toys",
  summary: "Make a toy",
  json: z.strictObject({ name: z.string().min(1).max(100) }),
  responses: [{ status: 202, description: "A job paints it.", type: "application/json", schema: made }],
  errors: [],
  handler:
    ({ newId, records, fabric }: FeatureDeps) =>
    async ({ caller, json: { name } }) => {
      const id = newId();
      await records.write({ sql: "INSERT INTO toys (id, name) VALUES (?, ?)", values: [id, name] });
      const { job } = await fabric.enqueue({ kind: PAINT.name, payload: { toy: id } }, caller);
      return jsonResponse(202, { id, job_id: job.id });
    },
});

const listToysRoute = defineRoute({
  method: "GET",
  path: "/v1/toys",
  role: "read",
  tag: "Toys",
  summary: "All toys",
  responses: [{ status: 200, description: "By name.", type: "application/json", schema: listed }],
  errors: [],
  handler:
    ({ records }: FeatureDeps) =>
    async () =>
      jsonResponse(200, { toys: await records.rows("SELECT name, colour FROM toys ORDER BY name LIMIT 100") }),
});

export const TOY_ROUTES = [makeToyRoute, listToysRoute];
