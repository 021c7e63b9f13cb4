import { checkSamples } from "../../config/option-samples.test-kit.ts";
import { UPDATE_OPTIONS } from "./options.ts";

checkSamples(UPDATE_OPTIONS, {
  updateUrl: {
    one: ["https://releases.example.com/engine/", "https://releases.example.com/engine"],
    two: ["file:///srv/engine", "file:///srv/engine"],
    bad: ["releases.example.com", "ftp://h/x", "file://host/x", "file:relative", "https://u:p@h", "https://h/?a=1"],
    badToml: ["1", "true"],
  },
  noUpdateCheck: { one: ["1", true, "true"], two: ["no", true], bad: [] },
});
