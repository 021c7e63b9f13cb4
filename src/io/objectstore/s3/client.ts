import { S3Client } from "@aws-sdk/client-s3";
import { VERSION } from "../../../core/version.ts";
import { RequestFailure } from "./failure.ts";
import type { S3Limits } from "./limits.ts";

/** Which store to speak to, and as whom: what `ENGINE_OBJSTORE_*` say. */
export type S3Connection = {
  bucket: string;
  region: string;
  /** Undefined: the cloud's own for the region. */
  endpoint: string | undefined;
  /** Undefined: the standard credential chain (variables, profile files, web identity, container, machine). */
  credentials: { accessKeyId: string; secretAccessKey: string } | undefined;
  /** `endpoint/bucket/key` instead of `bucket.endpoint/key`. */
  pathStyle: boolean;
  /** Whether requests may go without TLS. */
  allowHttp: boolean;
};

/** The SDK's client, with its own retries off (`Requests` has them) and a fixed number of sockets. */
export function makeS3Client(connection: S3Connection, limits: S3Limits): S3Client {
  const { region, endpoint, credentials, pathStyle, allowHttp } = connection;
  const agent = { keepAlive: true, maxSockets: limits.concurrentRequests };
  const client = new S3Client({
    region,
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials }),
    forcePathStyle: pathStyle,
    maxAttempts: 1,
    requestChecksumCalculation: "WHEN_SUPPORTED",
    responseChecksumValidation: "WHEN_SUPPORTED",
    requestHandler: { connectionTimeout: limits.connectTimeoutMs, httpAgent: agent, httpsAgent: agent },
    customUserAgent: [["engine", VERSION]],
  });
  if (!allowHttp) refusePlainHttp(client);
  return client;
}

/** Checked on each request, because profile files and variables of the SDK may name an endpoint too. */
function refusePlainHttp(client: S3Client): void {
  client.middlewareStack.add(
    (next) => (args) => {
      const { request } = args;
      const protocol =
        typeof request === "object" && request !== null ? (Reflect.get(request, "protocol") as unknown) : "";
      if (protocol === "https:") return next(args);
      throw new RequestFailure(
        "PlainHttp",
        "the endpoint of the object store is plain HTTP, which ENGINE_OBJSTORE_ALLOW_HTTP=false forbids; give an https endpoint",
      );
    },
    // Before anything is signed or sent.
    { step: "build", priority: "low", name: "refusePlainHttp" },
  );
}
