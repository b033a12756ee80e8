# SPDX-License-Identifier: Apache-2.0
"""Reads `nvidia-smi -q` text, and the captures that hold it among other sections."""
import csv
import re
from typing import Any, Dict, List, Optional, Tuple

Tree = Dict[str, Any]

# What a value may end in, and what makes it the unit of the replay library.
UNITS = {"": 1.0, "MiB": 2.0**20, "KB/s": 1.0, "%": 1.0, "C": 1.0, "W": 1000.0, "MHz": 1.0,
         "us": 1000.0, "x": 1.0}
WORDS = {"Enabled": 1, "Disabled": 0, "Yes": 1, "No": 0, "Active": 1, "Not Active": 0, "None": 0,
         "HMM": 1, "ATS": 2, "Default": 0, "Exclusive_Process": 3, "Prohibited": 2,
         "Pass-Through": 1, "VGPU": 2, "Reset": 1, "Reboot": 2, "Drain P2P": 3,
         "Drain and Reset": 4}

# Path in the text (| between levels) -> names of values. A later line wins over an earlier one, so
# that names of newer drivers stand last.
PATHS = [
    ("FB Memory Usage|Total", "memory_total"),
    ("FB Memory Usage|Reserved", "memory_reserved"),
    ("FB Memory Usage|Used", "mem_used"),
    ("FB Memory Usage|Free", "mem_free"),
    ("BAR1 Memory Usage|Total", "bar1_total"),
    ("BAR1 Memory Usage|Used", "bar1_used"),
    ("Utilization|GPU", "util_gpu"),
    ("Utilization|Memory", "util_mem"),
    ("Utilization|Encoder", "encoder_util"),
    ("Utilization|Decoder", "decoder_util"),
    ("Utilization|JPEG", "jpg_util"),
    ("Utilization|OFA", "ofa_util"),
    ("Temperature|GPU Current Temp", "temp_c"),
    ("Temperature|GPU Shutdown Temp", "temp_shutdown_c"),
    ("Temperature|GPU Slowdown Temp", "temp_slowdown_c"),
    ("Temperature|GPU Max Operating Temp", "temp_gpu_max_c"),
    ("Temperature|GPU T.Limit Temp", "margin_temperature_c"),
    ("Temperature|GPU Shutdown T.Limit Temp", "tlimit_shutdown_c"),
    ("Temperature|GPU Slowdown T.Limit Temp", "tlimit_slowdown_c"),
    ("Temperature|GPU Max Operating T.Limit Temp", "tlimit_gpu_max_c"),
    ("Temperature|Memory Current Temp", "memory_temp_c"),
    ("Temperature|Memory Max Operating Temp", "temp_mem_max_c"),
    ("Temperature|Memory Max Operating T.Limit Temp", "tlimit_memory_max_c"),
    ("Power Readings|Power Draw", "power_mw"),
    ("Power Readings|Power Limit", "power_management_limit_mw"),
    ("Power Readings|Enforced Power Limit", "power_limit_mw"),
    ("Power Readings|Default Power Limit", "power_default_limit_mw"),
    ("Power Readings|Min Power Limit", "power_min_limit_mw"),
    ("Power Readings|Max Power Limit", "power_max_limit_mw"),
    ("GPU Power Readings|Power Draw", "power_mw"),
    ("GPU Power Readings|Average Power Draw", "power_mw power_average_mw"),
    ("GPU Power Readings|Instantaneous Power Draw", "power_instant_mw"),
    ("GPU Power Readings|Current Power Limit", "power_limit_mw"),
    ("GPU Power Readings|Requested Power Limit",
     "power_requested_limit_mw power_management_limit_mw"),
    ("GPU Power Readings|Default Power Limit", "power_default_limit_mw"),
    ("GPU Power Readings|Min Power Limit", "power_min_limit_mw"),
    ("GPU Power Readings|Max Power Limit", "power_max_limit_mw"),
    ("Module Power Readings|Average Power Draw", "power_average_mw@1"),
    ("Module Power Readings|Instantaneous Power Draw", "power_instant_mw@1"),
    ("GPU Memory Power Readings|Average Power Draw", "power_average_mw@2"),
    ("GPU Memory Power Readings|Instantaneous Power Draw", "power_instant_mw@2"),
    ("Clocks|Graphics", "graphics_mhz"),
    ("Clocks|SM", "sm_mhz"),
    ("Clocks|Memory", "mem_mhz"),
    ("Clocks|Video", "video_mhz"),
    ("Max Clocks|Graphics", "max_graphics_mhz"),
    ("Max Clocks|SM", "max_sm_mhz"),
    ("Max Clocks|Memory", "max_mem_mhz"),
    ("Max Clocks|Video", "max_video_mhz"),
    ("Fan Speed", "fan_percent"),
    ("PCI|GPU Link Info|PCIe Generation|Max", "pcie_gen_max"),
    ("PCI|GPU Link Info|PCIe Generation|Current", "pcie_gen"),
    ("PCI|GPU Link Info|PCIe Generation|Device Max", "pcie_gpu_gen_max"),
    ("PCI|GPU Link Info|Link Width|Max", "pcie_width_max"),
    ("PCI|GPU Link Info|Link Width|Current", "pcie_width"),
    ("PCI|Replays Since Reset", "pcie_replay"),
    ("PCI|Replay Number Rollovers", "pcie_replay_rollover"),
    ("Clocks Event Reasons Counters|SW Power Capping", "perf_policy_power_ns"),
    ("Clocks Event Reasons Counters|Sync Boost", "perf_policy_sync_boost_ns"),
    ("ECC Mode|Current", "ecc_mode"),
    ("ECC Mode|Pending", "ecc_pending"),
    ("Retired Pages|Single Bit ECC", "retired_pages_sbe"),
    ("Retired Pages|Double Bit ECC", "retired_pages_dbe"),
    ("Retired Pages|Pending Page Blacklist", "retired_pages_pending"),
    ("Remapped Rows|Correctable Error", "remapped_corrected"),
    ("Remapped Rows|Uncorrectable Error", "remapped_uncorrected"),
    ("Remapped Rows|Pending", "remapped_pending"),
    ("Remapped Rows|Remapping Failure Occurred", "remapped_failure"),
    ("GPU Recovery Action", "recovery_action"),
    ("Persistence Mode", "persistence_mode"),
    ("Compute Mode", "compute_mode"),
    ("Accounting Mode", "accounting_mode"),
    ("Addressing Mode", "addressing_mode"),
    ("GPU Virtualization Mode|Virtualization Mode", "virtualization_mode"),
    ("MIG Mode|Current", "mig_mode"),
    ("MIG Mode|Pending", "mig_pending"),
    ("Minor Number", "minor"),
    ("MultiGPU Board", "multi_gpu_board"),
    ("Board ID", "board_id"),
    ("Platform Info|Module Id", "module_id"),
]

REASONS = {"Idle": 0x1, "Applications Clocks Setting": 0x2, "SW Power Cap": 0x4,
           "HW Slowdown": 0x8, "Sync Boost": 0x10, "SW Thermal Slowdown": 0x20,
           "HW Thermal Slowdown": 0x40, "HW Power Brake Slowdown": 0x80,
           "Display Clock Setting": 0x100}


def sections(text: str) -> Dict[str, str]:
    """Title -> body. A file without section marks is one section, `idle :: query (-q)`."""
    mark = re.compile(r"^#{20,}\n# (\S+ :: .*)\n(?:# .*\n)*#{20,}\n", re.MULTILINE)
    found = list(mark.finditer(text))
    if not found:
        return {"idle :: query (-q)": text}
    ends = [match.start() for match in found[1:]] + [len(text)]
    return {match.group(1).strip(): text[match.end():end] for match, end in zip(found, ends)}


def tree(text: str) -> Tree:
    """Nested by indentation. A key that comes again makes a list: MIG devices, processes."""
    root: Tree = {}
    stack: List[Tuple[int, Tree]] = [(-1, root)]
    for line in text.splitlines():
        match = re.match(r"^( *)(\S.*?)(?:\s+: (.*)|\s*)$", line)
        if match is None or match.group(2).startswith("==="):
            continue
        indent, key, value = len(match.group(1)), match.group(2), match.group(3)
        while stack[-1][0] >= indent:
            stack.pop()
        parent = stack[-1][1]
        node: Tree = {}
        if value is not None:
            node[""] = value.strip()
        if key in parent:
            parent.setdefault(key + "[]", [parent[key]]).append(node)
        parent[key] = node
        stack.append((indent, node))
    return root


def every(node: Tree, key: str) -> List[Tree]:
    """All children of this name, of which `tree` keeps the last one apart."""
    return list(node.get(key + "[]", [node[key]] if key in node else []))


def text_at(node: Tree, path: str) -> Optional[str]:
    for key in path.split("|"):
        if key not in node:
            return None
        node = node[key]
    return node.get("")


def number(text: Optional[str]) -> Optional[float]:
    """In the unit of the replay library; None for what is not a number, as N/A."""
    if text is None:
        return None
    if text in WORDS:
        return WORDS[text]
    if re.fullmatch(r"0x[0-9A-Fa-f]+", text):
        return int(text, 16)
    match = re.fullmatch(r"(-?[0-9.]+) ?(\S*)", text)
    if match is None or match.group(2) not in UNITS:
        return None
    value = round(float(match.group(1)) * UNITS[match.group(2)], 6)
    return int(value) if value == int(value) else value


def ecc_counts(gpu: Tree) -> Dict[str, float]:
    out: Dict[str, float] = {}
    for span in ("Volatile", "Aggregate"):
        for key, node in gpu.get("ECC Errors", {}).get(span, {}).items():
            count = number(node.get("")) if isinstance(node, dict) else None
            if count is None or "Threshold" in key:
                continue
            kind = "uncorrected" if "Uncorrectable" in key or "Double" in key else "corrected"
            name = "ecc_%s_%s" % (kind, span.lower())
            out[name] = out.get(name, 0) + count
    return out


def reasons(gpu: Tree) -> Dict[str, float]:
    node = gpu.get("Clocks Event Reasons", gpu.get("Clocks Throttle Reasons"))
    if node is None:
        return {}
    flat = {**node, **node.get("HW Slowdown", {})}
    mask = sum(bit for key, bit in REASONS.items()
               if isinstance(flat.get(key), dict) and flat[key].get("") == "Active")
    return {"clocks_event_reasons": mask}


def values(gpu: Tree) -> Dict[str, float]:
    out: Dict[str, float] = {}
    for path, names in PATHS:
        value = number(text_at(gpu, path))
        if value is not None:
            out.update({name: value for name in names.split()})
    state = re.fullmatch(r"P(\d+)", text_at(gpu, "Performance State") or "")
    if state:
        out["pstate"] = int(state.group(1))
    return {**out, **ecc_counts(gpu), **reasons(gpu)}


def processes(gpu: Tree) -> List[Dict[str, Any]]:
    out = []
    for node in every(gpu.get("Processes", {}), "Process ID"):
        entry: Dict[str, Any] = {"pid": int(node[""])}
        memory = number(text_at(node, "Used GPU Memory"))
        entry["memory"] = 2**64 - 1 if memory is None else memory
        kind = text_at(node, "Type") or "C"
        entry["kind"] = "graphics" if kind == "G" else "mps" if kind.startswith("M") else "compute"
        out.append(entry)
    owners = gpu.get("Processes", {})
    for key, name in (("GPU instance ID", "gi"), ("Compute instance ID", "ci")):
        for entry, node in zip(out, every(owners, key)):
            if (node.get("") or "").isdigit():
                entry[name] = int(node[""])
    return out


def instances(gpu: Tree, listed: Dict[int, Tuple[str, str]]) -> List[Optional[Dict[str, Any]]]:
    """MIG devices by index, None for a hole. `listed` is what -L says: profile and UUID."""
    out: List[Optional[Dict[str, Any]]] = []
    for node in every(gpu, "MIG Device"):
        index = int(node["Index"][""])
        out += [None] * (index + 1 - len(out))
        shared = node.get("Device Attributes", {}).get("Shared", {})
        found = {
            "memory_total": number(text_at(node, "FB Memory Usage|Total")),
            "memory_reserved": number(text_at(node, "FB Memory Usage|Reserved")),
            "mem_used": number(text_at(node, "FB Memory Usage|Used")),
            "mem_free": number(text_at(node, "FB Memory Usage|Free")),
            "bar1_total": number(text_at(node, "BAR1 Memory Usage|Total")
                                 or text_at(node, "BAR1 Memory|Total")),
            "bar1_used": number(text_at(node, "BAR1 Memory Usage|Used")
                                or text_at(node, "BAR1 Memory|Used")),
            "attribute_sm_count": number(text_at(shared, "Multiprocessor count")),
            "attribute_copy_engines": number(text_at(shared, "Copy Engine count")),
            "attribute_decoders": number(text_at(shared, "Decoder count")),
            "attribute_jpegs": number(text_at(shared, "JPG count")),
            "attribute_ofas": number(text_at(shared, "OFA count")),
        }
        instance: Dict[str, Any] = {
            "gi": int(node["GPU Instance ID"][""]), "ci": int(node["Compute Instance ID"][""]),
            "values": {key: value for key, value in found.items() if value is not None}}
        if index in listed:
            instance["profile"], instance["uuid"] = listed[index]
        out[index] = instance
    return out


def listing(text: str) -> Dict[int, Dict[int, Tuple[str, str]]]:
    """GPU index -> MIG index -> profile and UUID, from `nvidia-smi -L`."""
    out: Dict[int, Dict[int, Tuple[str, str]]] = {}
    gpu = -1
    for line in text.splitlines():
        head = re.match(r"GPU (\d+):", line)
        if head:
            gpu = int(head.group(1))
        part = re.match(r"\s+MIG (\S+)\s+Device\s+(\d+): \(UUID: (\S+)\)", line)
        if part:
            out.setdefault(gpu, {})[int(part.group(2))] = (part.group(1), part.group(3))
    return out


def utilization(text: str, gpu: int) -> List[Dict[str, Any]]:
    """The last row of each process in `nvidia-smi pmon`."""
    names: List[str] = []
    rows: Dict[int, Dict[str, Any]] = {}
    for line in text.splitlines():
        words = line.split()
        if words[:2] == ["#", "gpu"]:
            names = words[1:]
        elif len(words) > 3 and words[0] == str(gpu) and words[1].isdigit() and names:
            cells = dict(zip(names, words))
            row = {key: int(cells[key]) for key in ("sm", "mem", "enc", "dec", "jpg", "ofa")
                   if cells.get(key, "-").isdigit()}
            if row:
                rows[int(words[1])] = {"pid": int(words[1]), **row}
    return list(rows.values())


def over_time(idle: Dict[str, float], load: Dict[str, float], at_s: float) -> Dict[str, Any]:
    out: Dict[str, Any] = {}
    for key in sorted({**idle, **load}):
        same = key in idle and key in load and idle[key] == load[key]
        out[key] = idle[key] if same else [[0, idle.get(key)], [at_s, load.get(key)]]
    return out


def table(text: str) -> Dict[str, Dict[str, str]]:
    """Bus id -> column -> cell of a `--query-gpu ... --format=csv` section."""
    rows = [[cell.strip() for cell in row]
            for row in csv.reader(text.strip().splitlines(), skipinitialspace=True) if row]
    if not rows or "pci.bus_id" not in rows[0]:
        return {}
    names = [name.split(" [")[0] for name in rows[0]]
    return {row[names.index("pci.bus_id")]: dict(zip(names, row)) for row in rows[1:]
            if len(row) == len(names)}


def rows_of(state: str, found: Dict[str, str]) -> Dict[str, Dict[str, str]]:
    """The table of one state, whatever else stands in its title."""
    for title, text in found.items():
        if title.startswith(state + " :: query-gpu"):
            return table(text)
    return {}


def table_values(cells: Dict[str, str]) -> Dict[str, float]:
    """What only the table says."""
    out: Dict[str, float] = {}
    for column, name in (("clocks_event_reasons.supported", "clocks_supported_reasons"),
                         ("clocks_event_reasons.active", "clocks_event_reasons"),
                         ("clocks_throttle_reasons.supported", "clocks_supported_reasons"),
                         ("clocks_throttle_reasons.active", "clocks_event_reasons")):
        value = number(cells.get(column))
        if value is not None:
            out[name] = value
    capability = re.fullmatch(r"(\d+)\.(\d)", cells.get("compute_cap", ""))
    if capability:
        out["compute_capability"] = 10 * int(capability.group(1)) + int(capability.group(2))
    return out


def device(index: int, bus_id: str, states: Dict[str, Tree], found: Dict[str, str],
           at_s: float) -> Dict[str, Any]:
    first = next(iter(states.values()))
    out: Dict[str, Any] = {"name": text_at(first, "Product Name") or "unknown", "bus_id": bus_id,
                           "uuid": text_at(first, "GPU UUID") or "", "serial": ""}
    out["serial"] = text_at(first, "Serial Number") or ""
    device_id = number(text_at(first, "PCI|Device Id"))
    if device_id is not None:
        out["pci_device_id"] = device_id
    shown = {name: {**values(state), **table_values(rows_of(name, found).get(bus_id, {}))}
             for name, state in states.items()}
    if len(states) == 2:
        out["values"] = over_time(shown["idle"], shown["load"], at_s)
        out["processes"] = ([{**p, "to_s": at_s} for p in processes(states["idle"])] +
                            [{**p, "from_s": at_s} for p in processes(states["load"])])
    else:
        out["values"], out["processes"] = next(iter(shown.values())), processes(first)
    for title, text in found.items():
        rows = utilization(text, index) if title.startswith("load :: pmon") else []
        if rows and len(states) == 2:
            out["process_utilization"] = [{**row, "from_s": at_s} for row in rows]
    parts = instances(first, listing(found.get("capabilities :: list (-L)", "")).get(index, {}))
    if parts:
        out["mig"] = {"max": 7, "instances": parts}
    return {key: value for key, value in out.items() if value not in ("", "N/A")}


def convert(text: str, load_at_s: float) -> Dict[str, Any]:
    found = sections(text)
    states = {name: tree(body) for name in ("idle", "load")
              for title, body in found.items() if title.startswith(name + " :: query (-q)")}
    if not states:
        raise ValueError("holds no `nvidia-smi -q` text")
    top = next(iter(states.values()))
    gpus = [key for key in top if re.match(r"GPU [0-9A-Fa-f]+:", key)]
    out: Dict[str, Any] = {"devices": [
        device(index, key.split()[1], {name: state[key] for name, state in states.items()
                                       if key in state}, found, load_at_s)
        for index, key in enumerate(gpus)]}
    driver = text_at(top, "Driver Version")
    return {**({"driver": driver} if driver else {}), **out}
