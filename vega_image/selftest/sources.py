"""Where the convolution geometries come from: by the beginning of their names."""

from __future__ import annotations

import re

MODELS = (
    (("resnet50|regnet|densenet|inception|vgg16|alexnet|squeezenet|mobilenet|efficientnet|"
      "shufflenet|convnext|swin|vit_"), "torchvision/models"),
    ("clip_", "openai/CLIP clip/model.py"),
    ("dinov2", "facebookresearch/dinov2 dinov2/layers/patch_embed.py"),
    ("segformer", "NVlabs/SegFormer mmseg/models/backbones/mix_transformer.py"),
    ("hrnet", "HRNet/HRNet-Image-Classification lib/models/cls_hrnet.py"),
    ("yolov3|yolov5|yolov8", "ultralytics model definitions"),
    ("yolox", "Megvii-BaseDetection/YOLOX yolox/models/network_blocks.py"),
    ("unet_", "Ronneberger et al. 2015, U-Net"),
    ("sd_|sdxl_|rgb_out_sdvae",
     "CompVis/stable-diffusion ldm/modules/diffusionmodules/model.py"),
    ("cyclegan|pix2pix|rgb_out_gan|c3_to_3",
     "junyanz/pytorch-CycleGAN-and-pix2pix models/networks.py"),
    ("dcgan", "pytorch/examples dcgan/main.py; tensorflow-upstream#449"),
    ("edsr|srcnn|realesrgan", "xinntao/BasicSR basicsr/archs"),
    ("fst_", "pytorch/examples fast_neural_style"),
    ("cifar_", "He et al. 2015 and Zagoruyko 2016, CIFAR networks"),
    ("lenet", "LeCun et al. 1998"),
    ("raft", "princeton-vl/RAFT core/extractor.py"),
    ("wrw53_", "MIOpen conv_ocl_dir2D_bwdWrW_53.cpp guard (MIOpen#1242)"),
)  # fmt: skip
FAMILIES = {
    "stem_c3": "first layer with three channels: the historic wrong weight gradient",
    "stem_c3_odd": "first layer at odd sizes: edges of tiles",
    "small_c": "1 to 8 channels: weight-gradient kernels choose tiles by C mod 4, 3, 2",
    "small_k": "few output channels: tails of tiles",
    "last_rgb": "three output channels: backward-data of an RGB output",
    "latent4": "four latent channels of diffusion models",
    "mid_3x3": "interior 3x3: Winograd solvers",
    "mid_1x1": "interior 1x1: matrix products in disguise",
    "mid_3x3s2": "strided 3x3: a weight-gradient solver is imprecise (MIOpen#532)",
    "mid_rect": "filters that are not square",
    "depthwise": "one filter per channel: solvers of their own",
    "grouped": "groups: offsets of groups",
    "dilated": "dilation: falls to GEMM or naive solvers on gfx906",
    "edge": "edge geometry or reported shape",
}


def conv_source(name: str, family: str) -> str:
    """Return the model, report or sweep that a geometry comes from.

    >>> conv_source("edge_issue600", "edge"), conv_source("vgg16_n1", "stem_c3")
    ('MIOpen#600', 'torchvision/models vgg16')
    """
    issue = re.search(r"issue(\d+)", name)
    if issue:
        return ("pytorch#" if issue[1] == "102968" else "MIOpen#") + issue[1]
    for pattern, source in MODELS:
        found = re.match(pattern, name)
        if found:
            model = re.sub(r"_n\d+$", "", name)
            return f"{source} {model}"
    return f"parameter sweep of this suite: {family}"


def conv_why(family: str) -> str:
    """Return why a family is in the suite."""
    return FAMILIES.get(family, "")
