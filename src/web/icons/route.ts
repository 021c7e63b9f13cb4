import { valuesOf } from "../../config/option.ts";
import type { FeatureDeps } from "../../feature/feature.ts";
import { defineRoute, jsonResponse } from "../../server/route.ts";
import { nameSchemas } from "../../server/schema-names.ts";
import { WEB_OPTIONS } from "../options.ts";
import { gallery, openGallery } from "./gallery.ts";

nameSchemas({ Icons: gallery });

export const iconsRoute = defineRoute({
  method: "GET",
  path: "/v1/icons",
  role: "read",
  tag: "Service",
  summary: "Icons of kinds of things, and of vendors",
  description: "Those of the program, and those of the file that `ENGINE_ICON_GALLERY` names.",
  responses: [{ status: 200, description: "All of them.", type: "application/json", schema: gallery }],
  errors: [],
  compress: true,
  handler: ({ config }: FeatureDeps) => {
    const icons = openGallery(valuesOf(WEB_OPTIONS, config).iconGallery);
    return async () => jsonResponse(200, icons);
  },
});
