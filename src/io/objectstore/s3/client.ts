import { S3Client } from "@aws-sdk/client-s3";
import { VERSION } from "../../../core/version.ts";
import type { S3Limits } from "./limits.ts";
import { BEFORE_SIGNING, refusePlainHttp } from "./plain-http.ts";

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
  if (!allowHttp) client.middlewareStack.add(refusePlainHttp("object store"), BEFORE_SIGNING);
  return client;
}
