import * as kinds from "../config/kinds.ts";
import { OBJECT_STORE_OPTIONS } from "../config/object-store.ts";
import { option, optional, type Related } from "../config/option.ts";

/** How other programs read tables in place. */
export const OPEN_TABLE_OPTIONS = {
  icebergCredentials: option({
    env: "ENGINE_ICEBERG_CREDENTIALS",
    toml: "iceberg.credentials",
    kind: kinds.oneOf(["none", "static", "sts"]),
    default: "none",
    relation: (mode, others) => {
      if (mode === "static") return keysProblem(others);
      return mode === "sts" ? sessionsProblem(others) : undefined;
    },
    side: "S",
    doc:
      "What clients of the Iceberg catalog read the object store with: `none`, credentials that they bring; `static`, the " +
      "key pair below, handed out to clients that ask for one; `sts`, to the same a session of the role below, which reads " +
      "the table that they load and ends after an hour.",
  }),
  icebergAccessKeyId: optional({
    env: "ENGINE_ICEBERG_ACCESS_KEY_ID",
    toml: "iceberg.access_key_id",
    kind: kinds.accessKeyId,
    whenUnset: "nothing is handed out",
    side: "S",
    doc: "Key pair for `static`: whoever may read one table gets it, so it must allow reading only.",
  }),
  icebergSecretAccessKey: optional({
    env: "ENGINE_ICEBERG_SECRET_ACCESS_KEY",
    toml: "iceberg.secret_access_key",
    kind: kinds.secretAccessKey,
    whenUnset: "nothing is handed out",
    side: "S",
    secret: true,
    doc: "The secret of that key pair.",
  }),
  icebergRoleArn: optional({
    env: "ENGINE_ICEBERG_ROLE_ARN",
    toml: "iceberg.role_arn",
    kind: kinds.roleArn,
    whenUnset: "nothing is handed out",
    side: "S",
    doc:
      "Role for `sts`, which must allow to read the bucket and be assumed by the credentials of the object store. A " +
      "session of it may do no more than read one table, whatever the role allows.",
  }),
  icebergStsEndpoint: optional({
    env: "ENGINE_ICEBERG_STS_ENDPOINT",
    toml: "iceberg.sts_endpoint",
    kind: kinds.baseUrl,
    whenUnset: "the cloud's own for the region",
    side: "S",
    doc: "Address of the token service that gives sessions for `sts`.",
  }),
  icebergHoldSecs: option({
    env: "ENGINE_ICEBERG_HOLD_SECS",
    toml: "iceberg.hold_secs",
    kind: kinds.integer({ min: 0, max: 86_400 }),
    default: 3_600,
    side: "S",
    doc:
      "Seconds for which the files of a table stay after an Iceberg client has loaded it, whatever merges and deletion do. " +
      "Readers that take longer rely on `ENGINE_PHYSICAL_GC_GRACE_SECS`.",
  }),
} as const;

function keysProblem({ values, shown }: Related): string | undefined {
  if (values["icebergAccessKeyId"] !== undefined && values["icebergSecretAccessKey"] !== undefined) return undefined;
  return `${shown("icebergCredentials")} needs ENGINE_ICEBERG_ACCESS_KEY_ID and ENGINE_ICEBERG_SECRET_ACCESS_KEY`;
}

function sessionsProblem({ values, originOf, shown }: Related): string | undefined {
  const mode = shown("icebergCredentials");
  const isLocal = values["localMode"] === true || OBJECT_STORE_OPTIONS.every((name) => originOf(name) === "default");
  if (isLocal) return `${mode} is for an S3 store, and this server keeps its objects on a local disk`;
  if (values["icebergRoleArn"] === undefined) return `${mode} needs ENGINE_ICEBERG_ROLE_ARN`;
  const endpoint = values["icebergStsEndpoint"];
  if (values["objstoreAllowHttp"] === true || typeof endpoint !== "string" || endpoint.startsWith("https:")) {
    return undefined;
  }
  return `${shown("icebergStsEndpoint")} is without TLS, which ${shown("objstoreAllowHttp")} forbids`;
}
