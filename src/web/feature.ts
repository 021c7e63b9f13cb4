import type { Feature, FeatureDeps } from "../feature/feature.ts";
import type { WebDeps } from "./serve/routes.ts";

/** The pages of this server for browsers: `client/` is built into `dist/web/` (`scripts/web/`), `serve/` hands it out. */
export const WEB: Feature<{ web: WebDeps; feature: FeatureDeps }> = {
  name: "web",
  title: "Web UI",
  options: async () => (await import("./options.ts")).WEB_OPTIONS,
  routes: async () => {
    const [{ WEB_ROUTES }, { iconsRoute }] = await Promise.all([
      import("./serve/routes.ts"),
      import("./icons/route.ts"),
    ]);
    return [
      { name: "web", answeredBy: "web", routes: WEB_ROUTES },
      { name: "icons", answeredBy: "feature", routes: [iconsRoute] },
    ];
  },
};
