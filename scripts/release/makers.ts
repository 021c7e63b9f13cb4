import { archiveMaker } from "./archives.ts";
import { imageMaker } from "./image.ts";
import type { Maker } from "./maker.ts";
import { npmMaker } from "./npm-package.ts";
import { sbomMaker } from "./sbom.ts";
import { singleFileMaker } from "./single-files.ts";

/** What a release consists of. `--only` picks from these by name. */
export const MAKERS: readonly Maker[] = [npmMaker, archiveMaker, singleFileMaker, sbomMaker, imageMaker];
