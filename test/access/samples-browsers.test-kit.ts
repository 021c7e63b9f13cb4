import { newName, type Sample } from "./sample.test-kit.ts";
import { jsonRequest, ROOT, type TestRequest } from "./world.test-kit.ts";

const ok = () => 200;

/** As a page of the server makes it where a browser says nothing about it. */
function ofOwnPage(path: string, body?: unknown): TestRequest {
  const request = jsonRequest("POST", path, body);
  return { ...request, headers: { ...request.headers, "x-engine-web": "1" } };
}

/** Of signing in from a browser. */
export const BROWSER_SAMPLES: Readonly<Record<string, Sample>> = {
  "POST /v1/auth/web/login": { request: () => ofOwnPage("/v1/auth/web/login", ROOT), answer: ok },
  "POST /v1/auth/web/token": {
    request: async (world) => {
      const { token } = await world.admin("POST", "/v1/auth/tokens", { name: newName() });
      return ofOwnPage("/v1/auth/web/token", { token });
    },
    answer: ok,
  },
  "POST /v1/auth/web/logout": { request: () => ofOwnPage("/v1/auth/web/logout"), answer: ok },
  "GET /v1/auth/web/start": {
    request: () => ({ method: "GET", path: "/v1/auth/web/start?provider=none" }),
    answer: () => 302,
  },
  "GET /v1/auth/web/callback": {
    request: () => ({ method: "GET", path: "/v1/auth/web/callback?code=a&state=b" }),
    answer: () => 302,
  },
};
