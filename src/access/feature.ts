import type { Feature } from "../feature/feature.ts";
import type { AccessDeps } from "./deps.ts";

/** Signing in, users, tokens and ownership. */
export const ACCESS: Feature<{ access: AccessDeps }> = {
  name: "access",
  title: "Users and tokens",
  routes: async () => {
    const { ACCESS_ROUTES } = await import("./access-routes.ts");
    return [{ name: "access", answeredBy: "access", routes: ACCESS_ROUTES }];
  },
};
