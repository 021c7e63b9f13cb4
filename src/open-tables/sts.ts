import { AssumeRoleCommand, STSClient } from "@aws-sdk/client-sts";
import type { Clock } from "../core/clock.ts";
import { VERSION } from "../core/version.ts";
import { BEFORE_SIGNING, refusePlainHttp } from "../io/objectstore/s3/plain-http.ts";
import { Timeout } from "../io/objectstore/s3/timeout.ts";
import type { AssumeRole } from "./sessions.ts";

export type TokenService = {
  roleArn: string;
  region: string;
  /** Undefined: the cloud's own for the region. */
  endpoint: string | undefined;
  /** Undefined: the standard credential chain. */
  credentials: { accessKeyId: string; secretAccessKey: string } | undefined;
  /** Whether requests may go without TLS, and with them the keys that come back. */
  allowHttp: boolean;
};

const CONNECT_MS = 3_000;
/** For both attempts: a client of the catalog waits for it. */
const MOST_MS = 15_000;
const ATTEMPTS = 2;

/** Sessions of a role, from the cloud's token service or one that speaks like it. */
export function assumeRoleAt(service: TokenService, clock: Clock): AssumeRole {
  const { roleArn, region, endpoint, credentials, allowHttp } = service;
  const client = new STSClient({
    region,
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials }),
    maxAttempts: ATTEMPTS,
    requestHandler: { connectionTimeout: CONNECT_MS },
    customUserAgent: [["engine", VERSION]],
  });
  if (!allowHttp) client.middlewareStack.add(refusePlainHttp("token service"), BEFORE_SIGNING);
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
        throw new Error("the token service answered without credentials");
      }
      return { accessKeyId, secretAccessKey, sessionToken, expiresAtMs };
    } catch (error) {
      throw timeout.signal.aborted ? timeout.signal.reason : error;
    } finally {
      timeout.dispose();
    }
  };
}
