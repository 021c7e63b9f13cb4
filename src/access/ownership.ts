import { z } from "zod";

import { defineRoute, jsonResponse } from "../server/route.ts";
import { originOf } from "../server/origin.ts";
import type { AccessDeps } from "./deps.ts";

/** Whose records are whose: see `auth/owner.ts`. */

const owner = z.string().min(1).describe("As `owned_by` of a record shows it; `admins:` for records that nobody owns.");

export const transferOwnershipRoute = defineRoute({
  role: "admin",
  unscoped: true,
  tag: "Users",
  method: "POST",
  path: "/v1/admin/ownership/transfer",
  summary: "Hand the records of one owner to another one",
  description: "All of them or none. Tokens and sessions stay as they are.",
  json: z.strictObject({ from: owner, to: owner }),
  responses: [
    {
      status: 200,
      description: "How many records of each table went over.",
      type: "application/json",
      schema: z.object({ transferred: z.array(z.object({ table: z.string(), count: z.int() })) }),
    },
  ],
  errors: ["conflict", "insufficient_storage"],
  handler:
    ({ ownership }: Pick<AccessDeps, "ownership">) =>
    async (call) => {
      const { from, to } = call.json;
      return jsonResponse(200, { transferred: await ownership.transfer(from, to, originOf(call)) });
    },
});
