// Reads delivery records as NASA's Cumulus does: its own PVL reader (@cumulus/pvl), behind the same change of the text, and
// the rules that its task parse-pdr holds a record to.
//
//     node read.js FOLDER-WITH-NODE_MODULES HOSTS < records.json
//
// Standard input is a JSON list of texts, HOSTS the hosts that the consumer knows, with commas between them. Prints a list:
// of each record what was read, or `refused` with the rule that it breaks.

"use strict";

const { createRequire } = require("node:module");
const [folder, hosts] = process.argv.slice(2);
const { pvlToJS } = createRequire(`${folder}/`)("@cumulus/pvl");

const FILE_TYPES = [
  "HDF", "HDF-EOS", "SCIENCE", "BROWSE", "METADATA", "BROWSE_METADATA", "QA_METADATA", "PRODHIST", "QA", "TGZ", "LINKAGE",
];

function hold(rule, holds) {
  if (!holds) throw new Error(rule);
}

function value(of, key) {
  const found = of.get(key);
  return found ? found.value : undefined;
}

function file(spec) {
  const [directory, name, size, type, sumType, sum] = [
    "DIRECTORY_ID", "FILE_ID", "FILE_SIZE", "FILE_TYPE", "FILE_CKSUM_TYPE", "FILE_CKSUM_VALUE",
  ].map((key) => value(spec, key));
  hold("DIRECTORY_ID is text", typeof directory === "string");
  hold("FILE_ID is text", typeof name === "string");
  hold("FILE_SIZE is a number", typeof size === "number");
  hold(`INVALID FILE_TYPE PARAMETER: ${type}`, FILE_TYPES.includes(type));
  if (sum || sumType) {
    hold("MISSING FILE_CKSUM_TYPE PARAMETER", sumType);
    hold("MISSING FILE_CKSUM_VALUE PARAMETER", sum);
    hold(`UNSUPPORTED CHECKSUM TYPE: ${sumType}`, ["CKSUM", "MD5"].includes(sumType));
    hold("a CKSUM is a number", sumType !== "CKSUM" || typeof sum === "number");
    hold("an MD5 is text", sumType !== "MD5" || typeof sum === "string");
  }
  return { directory, name, size, type, sum: sum === undefined ? null : [sumType, sum] };
}

function group(of) {
  const [type, version] = [value(of, "DATA_TYPE"), value(of, "DATA_VERSION")];
  hold("DATA_TYPE is text", typeof type === "string");
  hold("DATA_VERSION is missing", version !== undefined);
  const specs = of.objects("FILE_SPEC");
  hold("No FILE_SPEC sections found.", specs.length > 0);
  const node = value(of, "NODE_NAME");
  hold(`Provider for host ${node} not found`, node === undefined || hosts.split(",").includes(node));
  return { type, version: `${version}`, node: node ?? null, files: specs.map(file) };
}

function read(text) {
  hold("PDR file had no contents", text.trim().length > 0);
  // The consumer's own preparation: blanks around each `=`, and no `"`.
  const root = pvlToJS(text.replace(/(\w*)=(\w*)/g, "$1 = $2").replace(/"/g, ""));
  const groups = root.objects("FILE_GROUP").map(group);
  hold("there is a FILE_GROUP", groups.length > 0);
  // A granule is known by its first file.
  const granules = groups.map((one) => one.files[0].name);
  hold("Duplicate granule ID found", new Set(granules).size === granules.length);
  const header = ["ORIGINATING_SYSTEM", "CONSUMER_SYSTEM", "TOTAL_FILE_COUNT"].map((key) => value(root, key));
  hold("TOTAL_FILE_COUNT is that of the files", header[2] === groups.flatMap((one) => one.files).length);
  hold("EXPIRATION_TIME is a time", value(root, "EXPIRATION_TIME") instanceof Date);
  return { from: header[0], to: header[1], expires: value(root, "EXPIRATION_TIME").toISOString(), groups };
}

let input = "";
process.stdin.on("data", (part) => (input += part));
process.stdin.on("end", () => {
  const answers = JSON.parse(input).map((text) => {
    try {
      return read(text);
    } catch (error) {
      return { refused: error.message };
    }
  });
  process.stdout.write(JSON.stringify(answers));
});
