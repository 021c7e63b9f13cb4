import { z } from "zod";
import { EngineError } from "../../core/errors.ts";
import type { HttpResponse } from "../../io/http/http.ts";
import type { DevicePoll } from "../oauth/device-flows.ts";
import { originOf, secret } from "../../server/origin.ts";
import type { ConnectionDeps } from "./deps.ts";
import { defineRoute } from "../../server/route.ts";
import { checkIsGet } from "../../server/check-is-get.ts";
import { BASE_PATH, checkIsListed, connected, connection, providerPath, refusal } from "./shared.ts";

/** Connecting an account where there is no browser (RFC 8628). */

const MAX_CODE_CHARS = 200;

const common = { tag: "OAuth" } as const;

export const deviceCodeRoute = defineRoute({
  ...common,
  method: "GET",
  path: `${BASE_PATH}/{provider}/device-code`,
  role: "write",
  summary: "Begin to connect an account without a browser",
  description: "Show `user_code` and `verification_uri` to the owner of the account, and ask `device-poll` meanwhile.",
  params: providerPath,
  responses: [
    {
      status: 200,
      description: "The provider waits for the owner.",
      type: "application/json",
      schema: z.object({
        device_code: z.string().describe("For `device-poll`, by the same caller."),
        user_code: z.string(),
        verification_uri: z.string(),
        expires_in: z.int().describe("Seconds."),
        interval: z.int().describe("Seconds to wait between two questions."),
      }),
    },
  ],
  errors: [
    ...(["not_found", "method_not_allowed", "oauth_failed"] as const),
    ...(["not_configured", "unavailable", "insufficient_storage"] as const),
  ],
  handler: (deps: ConnectionDeps) => async (call) => {
    checkIsGet(call.request, "GET");
    const { provider } = call.params;
    checkIsListed(deps, provider);
    const begun = await deps.devices.begin(provider, originOf(call));
    return secret(200, {
      device_code: begun.deviceCode,
      user_code: begun.userCode,
      verification_uri: begun.verificationUri,
      expires_in: Math.floor(begun.ttlMs / 1_000),
      interval: inSecs(begun.intervalMs),
    });
  },
});

export const devicePollRoute = defineRoute({
  ...common,
  method: "POST",
  path: `${BASE_PATH}/{provider}/device-poll`,
  role: "write",
  summary: "Ask whether the owner has agreed",
  description: "The provider is not asked more often than it wants, however often this is.",
  params: providerPath,
  json: z.strictObject({ device_code: z.string().max(MAX_CODE_CHARS) }),
  responses: [
    { status: 200, description: "The account is connected.", type: "application/json", schema: connection },
    {
      status: 202,
      description: "The owner has not decided, or this was asked too soon.",
      type: "application/json",
      schema: z.object({
        status: z.enum(["pending", "slow_down"]),
        interval: z.int().describe("Seconds to wait before the next question."),
      }),
    },
  ],
  errors: [
    ...(["not_found", "oauth_denied", "oauth_expired", "oauth_failed", "conflict"] as const),
    ...(["not_configured", "unavailable", "insufficient_storage"] as const),
  ],
  handler: (deps: ConnectionDeps) => async (call) => {
    const { provider } = call.params;
    checkIsListed(deps, provider);
    return answerOf(provider, await deps.devices.poll(provider, call.json.device_code, originOf(call)));
  },
});

function answerOf(provider: string, poll: DevicePoll): HttpResponse {
  switch (poll.status) {
    case "done":
      return connected(poll.credentialId, provider);
    case "denied":
      throw refusal("access_denied");
    case "expired":
      throw new EngineError("oauth_expired", "the owner of the account did not decide in time: begin again");
    case "failed":
      throw refusal(poll.detail);
    case "pending":
    case "slow_down":
      return secret(202, { status: poll.status, interval: inSecs(poll.intervalMs) });
  }
}

function inSecs(ms: number): number {
  return Math.ceil(ms / 1_000);
}
