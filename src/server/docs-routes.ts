import { docsPagePolicy, renderDocsPage } from "./docs-page.ts";
import { openApiOf } from "./openapi.ts";
import { plainRoute, jsonResponse, type Route } from "./route.ts";

/** The reference of the given routes and of these two themselves; rendered once. */
export function apiDocsRoutes(routes: readonly Route[], info: { title: string; version: string }): Route[] {
  const page = { html: "", policy: docsPagePolicy() };
  const document: { json: unknown } = { json: {} };
  const own = [
    plainRoute({
      method: "GET",
      path: "/v1/openapi.json",
      role: "none",
      tag: "Service",
      summary: "This API as OpenAPI 3.1",
      compress: true,
      responses: [{ status: 200, description: "The document.", type: "application/json" }],
      errors: [],
      handle: async () => jsonResponse(200, document.json),
    }),
    plainRoute({
      method: "GET",
      path: "/docs",
      role: "none",
      tag: "Service",
      summary: "This API as a page to read, and to try",
      compress: true,
      responses: [{ status: 200, description: "The page.", type: "text/html" }],
      errors: [],
      handle: async () => ({
        status: 200,
        headers: {
          "Content-Type": "text/html; charset=utf-8",
          "Content-Security-Policy": page.policy,
        },
        body: page.html,
      }),
    }),
  ];
  const all = [...routes, ...own];
  document.json = openApiOf(all, info);
  page.html = renderDocsPage(all, info);
  return own;
}
