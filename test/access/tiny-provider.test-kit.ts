import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A provider of accounts that never decides about devices, and renews every token. */
export async function startTinyProvider(): Promise<{ environment: Record<string, string>; close: () => void }> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const form = new URLSearchParams(Buffer.concat(chunks).toString("utf8"));
      const [status, body] = answerTo(request.url ?? "", form.get("grant_type"));
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = {
    client_id: "an-app",
    client_secret: "a-secret",
    authorize_url: `${url}/authorize`,
    token_url: `${url}/token`,
    device_authorization_url: `${url}/device`,
  };
  return {
    environment: { ENGINE_OAUTH_PROVIDERS: JSON.stringify({ "an-issuer": provider }) },
    close: () => void server.close(),
  };
}

function answerTo(path: string, grant: string | null): [number, unknown] {
  if (path === "/device") {
    const verification_uri = "http://127.0.0.1/verify";
    return [200, { device_code: "a code", user_code: "U-1", verification_uri, expires_in: 600, interval: 1 }];
  }
  if (grant !== "refresh_token") return [400, { error: "authorization_pending" }];
  return [200, { access_token: "new", token_type: "Bearer", refresh_token: "r-2", expires_in: 3_600 }];
}
