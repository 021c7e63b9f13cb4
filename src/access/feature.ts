import type { Feature } from "../feature/feature.ts";
import type { AccessDeps } from "./deps.ts";

/** Signing in, users, tokens and ownership. */
export const ACCESS: Feature<{ access: AccessDeps }> = {
  name: "access",
  title: "Users and tokens",
  commands: {
    login: () => import("./commands/login.ts"),
    logout: () => import("./commands/logout.ts"),
    user: () => import("./commands/user.ts"),
    token: () => import("./commands/token.ts"),
    "transfer-ownership": () => import("./commands/transfer-ownership.ts"),
  },
  routes: async () => {
    const { ACCESS_ROUTES } = await import("./access-routes.ts");
    return [{ name: "access", answeredBy: "access", routes: ACCESS_ROUTES }];
  },
};
