/** What a client of the Iceberg catalog is told of a server. */
export type ServerFacts = {
  /** Of the server: `http://127.0.0.1:7777`. */
  url: string;
  /** Of an S3 store; absent for a server on a local disk. */
  s3?: { endpoint?: string; region: string; pathStyle: boolean };
  /** The server hands out keys to the store. */
  givesKeys: boolean;
};

export const CLIENTS = ["spark", "trino", "duckdb", "pyiceberg", "clickhouse"] as const;
export type Client = (typeof CLIENTS)[number];

/**
 * How a client is configured to read the tables of a server. TOKEN stands for a token of the role `read`, KEY and SECRET for
 * a key pair of the object store: secrets are not printed.
 */
export function configurationOf(client: Client, facts: ServerFacts): string {
  return TEXTS[client](facts).join("\n");
}

const TEXTS: Readonly<Record<Client, (facts: ServerFacts) => string[]>> = {
  // With `iceberg-aws-bundle` beside it for a bucket.
  spark: ({ url, s3, givesKeys }) => [
    "spark.sql.catalog.lake                org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type           rest",
    `spark.sql.catalog.lake.uri            ${url}/iceberg`,
    "spark.sql.catalog.lake.token          TOKEN",
    "spark.sql.catalog.lake.cache-enabled  false",
    ...(s3 === undefined ? [] : sparkKeys(givesKeys)),
  ],
  trino: ({ url, s3 }) => [
    "connector.name=iceberg",
    "iceberg.catalog.type=rest",
    `iceberg.rest-catalog.uri=${url}/iceberg`,
    "iceberg.rest-catalog.security=OAUTH2",
    "iceberg.rest-catalog.oauth2.token=TOKEN",
    "iceberg.security=read_only",
    ...(s3 === undefined
      ? ["fs.hadoop.enabled=true"]
      : [
          "fs.native-s3.enabled=true",
          ...(s3.endpoint === undefined ? [] : [`s3.endpoint=${s3.endpoint}`]),
          `s3.region=${s3.region}`,
          ...(s3.pathStyle ? ["s3.path-style-access=true"] : []),
          "s3.aws-access-key=KEY",
          "s3.aws-secret-key=SECRET",
        ]),
  ],
  duckdb: ({ url, s3, givesKeys }) => [
    "INSTALL iceberg; LOAD iceberg;",
    ...(s3 === undefined || givesKeys ? [] : [s3Secret(s3)]),
    "CREATE SECRET engine (TYPE iceberg, TOKEN 'TOKEN');",
    `ATTACH '' AS lake (TYPE iceberg, ENDPOINT '${url}/iceberg', SECRET engine${givesKeys ? "" : ", ACCESS_DELEGATION_MODE 'none'"});`,
  ],
  pyiceberg: ({ url, s3, givesKeys }) => [
    "from pyiceberg.catalog.rest import RestCatalog",
    "",
    s3 === undefined || givesKeys
      ? `catalog = RestCatalog("engine", uri="${url}/iceberg", token="TOKEN")`
      : `catalog = RestCatalog("engine", uri="${url}/iceberg", token="TOKEN", **{"s3.access-key-id": "KEY", "s3.secret-access-key": "SECRET"})`,
  ],
  clickhouse: ({ url, s3, givesKeys }) => [
    `CREATE DATABASE lake ENGINE = DataLakeCatalog('${url}/iceberg/v1', 'KEY', 'SECRET')`,
    "SETTINGS catalog_type = 'rest', warehouse = 'engine', auth_header = 'Authorization: Bearer TOKEN'" +
      (s3?.endpoint === undefined || givesKeys
        ? ";"
        : `,\n  vended_credentials = false, storage_endpoint = '${s3.endpoint}/';`),
  ],
};

function sparkKeys(areGiven: boolean): string[] {
  if (areGiven) return ["spark.sql.catalog.lake.header.X-Iceberg-Access-Delegation  vended-credentials"];
  return ["spark.sql.catalog.lake.s3.access-key-id      KEY", "spark.sql.catalog.lake.s3.secret-access-key  SECRET"];
}

function s3Secret({ endpoint, region, pathStyle }: NonNullable<ServerFacts["s3"]>): string {
  const parts = ["TYPE s3", "KEY_ID 'KEY'", "SECRET 'SECRET'", `REGION '${region}'`];
  if (endpoint !== undefined) {
    const { host, protocol } = new URL(endpoint);
    parts.push(`ENDPOINT '${host}'`, `USE_SSL ${protocol === "https:"}`);
  }
  if (pathStyle) parts.push("URL_STYLE 'path'");
  return `CREATE SECRET store (${parts.join(", ")});`;
}
