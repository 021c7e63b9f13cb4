import { z } from "zod";
import type { Fabric } from "../../fabric/fabric.ts";
import { holdIn, optionalFence } from "../../fabric/routes/jobs-leased.ts";
import { originOf, secret } from "../../server/origin.ts";
import { defineRoute, workerOf } from "../../server/route.ts";
import type { JobCredentials } from "../job-credentials.ts";

/** What the secrets of running jobs work with. */
export type JobCredentialDeps = { fabric: Fabric; secrets: JobCredentials };

export const jobCredentialRoute = defineRoute({
  role: "worker",
  tag: "Jobs",
  method: "GET",
  path: "/v1/jobs/{id}/credentials/{credential_id}",
  summary: "The secret of a credential that the job names",
  description:
    "For the worker that holds the job, as long as it does, if the job's owner may use the credential; and, unless it is the " +
    "worker's owner's, if an admin admitted the worker for that kind of job. It must not be kept.",
  params: z.object({ id: z.string(), credential_id: z.string() }),
  headers: optionalFence,
  responses: [
    {
      status: 200,
      description: "The value, by the `kind` of the credential.",
      type: "application/json",
      schema: z.looseObject({ kind: z.string() }),
    },
  ],
  errors: ["invalid_header", "lease_lost", "not_found", "not_configured", "insufficient_storage"],
  handler:
    ({ fabric, secrets }: JobCredentialDeps) =>
    async (call) => {
      const to = { holder: workerOf(call), origin: originOf(call) };
      return secret(200, await secrets.reveal(await holdIn(fabric, call), call.params.credential_id, to));
    },
});
