import { AssumeRoleCommand, STSClient } from "@aws-sdk/client-sts";
import type { Clock } from "../core/clock.ts";
import { VERSION } from "../core/version.ts";
import { Timeout } from "../io/objectstore/s3/timeout.ts";
import type { AssumeRole } from "./sessions.ts";

export type TokenService = {
  roleArn: string;
  region: string;
  /** Undefined: the cloud's own for the region. */
  endpoint: string | undefined;
  /** Undefined: the standard credential chain. */
  credentials: { accessKeyId: string; secretAccessKey: string } | undefined;
};

const CONNECT_MS = 3_000;
/** For both attempts: a client of the catalog waits for it. */
const MOST_MS = 15_000;
const ATTEMPTS = 2;

/** Sessions of a role, from the cloud's token service or one that speaks like it. */
export function assumeRoleAt({ roleArn, region, endpoint, credentials }: TokenService, clock: Clock): AssumeRole {
  const client = new STSClient({
    region,
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials }),
    maxAttempts: ATTEMPTS,
    requestHandler: { connectionTimeout: CONNECT_MS },
    customUserAgent: [["engine", VERSION]],
  });
  return async ({ name, policy, seconds }) => {
    const command = new AssumeRoleCommand({
      RoleArn: roleArn,
      RoleSessionName: name,
      Policy: policy,
      DurationSeconds: seconds,
    });
    const timeout = new Timeout(clock, MOST_MS, (ms) => new Error(`no answer within ${ms / 1_000} s`));
    try {
      const { Credentials: given } = await client.send(command, { abortSignal: timeout.signal });
      const { AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey, SessionToken: sessionToken } = given ?? {};
      const expiresAtMs = given?.Expiration?.getTime();
      if (!accessKeyId || !secretAccessKey || !sessionToken || expiresAtMs === undefined) {
        throw new Error("the answer has no keys");
      }
      return { accessKeyId, secretAccessKey, sessionToken, expiresAtMs };
    } catch (error) {
      throw timeout.signal.aborted ? timeout.signal.reason : error;
    } finally {
      timeout.dispose();
    }
  };
}
