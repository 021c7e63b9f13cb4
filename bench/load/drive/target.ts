import { HttpConnection, type HttpAnswer } from "../../support/http-connection.ts";

/** The server that is asked. Where there is a `ca` (PEM), over TLS, with a certificate that it has signed. */
export type Target = { host: string; port: number; ca?: string };

export function targetOf(url: string, ca: string | undefined): Target {
  const { hostname, port, protocol } = new URL(url);
  if (protocol !== "https:") return { host: hostname, port: Number(port || 80) };
  if (ca === undefined) throw new Error(`${url} speaks TLS: say which ca has signed its certificate`);
  return { host: hostname, port: Number(port || 443), ca };
}

export function connectTo({ host, port, ca }: Target): Promise<HttpConnection> {
  return HttpConnection.open(host, port, ca);
}

/** The head of a request without the lines that say how long its body is, and without the blank one at its end. */
export function headOf(
  { host, port }: Target,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
): string {
  const all = Object.entries({ Host: `${host}:${port}`, ...headers });
  return `${method} ${path} HTTP/1.1\r\n${all.map(([name, value]) => `${name}: ${value}\r\n`).join("")}`;
}

/** The head with its end. */
export function withLength(head: string, body: Buffer): string {
  return `${head}${body.length === 0 ? "" : `Content-Length: ${body.length}\r\n`}\r\n`;
}

/** Asks a query over a connection of its own. */
export async function queryOnce(target: Target, sql: string): Promise<HttpAnswer> {
  const connection = await connectTo(target);
  try {
    const body = Buffer.from(sql);
    return await connection.send(withLength(headOf(target, "POST", "/v1/query", {}), body), body);
  } finally {
    connection.close();
  }
}

/** How many rows the tables have together; one that is not there yet has none. */
export async function rowsIn(target: Target, tables: readonly string[]): Promise<number> {
  let rows = 0;
  for (const table of tables) {
    const { status, body } = await queryOnce(target, `SELECT count(*) AS n FROM ${table}`);
    if (status === 200) rows += (JSON.parse(body) as { n: number }).n;
    else if (status !== 404) throw new Error(`counting ${table} was answered ${status}: ${body}`);
  }
  return rows;
}
